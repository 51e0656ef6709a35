// Reading: the length, the header, and whether the data is what it says.
#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <tuple>

#include "base/mapped_file.h"
#include "base/message.h"
#include "io/safetensors_header.h"
#include "io/tensor_type.h"
#include "polyattn/io/safetensors.h"

namespace polyattn::io {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::size_t kLengthBytes = 8;

struct Parts {
  std::string_view header;
  Bytes data;
};

Parts split(Bytes file, std::string_view source) {
  if (file.size() < kLengthBytes) {
    throw SafetensorsError(
        source,
        base::concat("file has ", file.size(), " bytes, fewer than the ",
                     kLengthBytes, " that hold the length of the header"));
  }
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) {
    length = length << 8 | std::to_integer<std::uint64_t>(file[i]);
  }
  if (length > kMaxHeaderBytes) {
    throw SafetensorsError(
        source,
        base::concat("header length ", length, " > limit ", kMaxHeaderBytes,
                     ": this is not a safetensors file"));
  }
  const Bytes rest = file.subspan(kLengthBytes);
  if (length > rest.size()) {
    throw SafetensorsError(
        source,
        base::concat("header length ", length, " > ", rest.size(),
                     " bytes that follow: the file is cut short, or is not "
                     "a safetensors file"));
  }
  const Bytes header = rest.first(static_cast<std::size_t>(length));
  return {{reinterpret_cast<const char*>(header.data()), header.size()},
          rest.subspan(header.size())};
}

// Turns entries into views, and holds each against the data.
class Layout {
 public:
  Layout(Bytes data, std::string_view source) : data_(data), source_(source) {}

  std::vector<TensorView> views(std::vector<HeaderEntry> entries) const {
    std::sort(entries.begin(), entries.end(),
              [](const HeaderEntry& a, const HeaderEntry& b) {
                return std::tie(a.data_offsets, a.name) <
                       std::tie(b.data_offsets, b.name);
              });
    std::vector<TensorView> result;
    result.reserve(entries.size());
    std::uint64_t covered = 0;
    for (HeaderEntry& entry : entries) {
      check_size(entry);
      check_begin(entry, covered);
      covered = end_of(entry);
      const Bytes bytes =
          data_.subspan(begin_of(entry), end_of(entry) - begin_of(entry));
      result.push_back(
          {std::move(entry.name), entry.type, std::move(entry.shape), bytes});
    }
    if (covered != data_.size()) {
      refuse(base::concat("tensors end at ", covered, ", but the data has ",
                          data_.size(),
                          " bytes: the rest belongs to no tensor"));
    }
    return result;
  }

 private:
  static std::uint64_t begin_of(const HeaderEntry& entry) {
    return static_cast<std::uint64_t>(entry.data_offsets[0]);
  }
  static std::uint64_t end_of(const HeaderEntry& entry) {
    return static_cast<std::uint64_t>(entry.data_offsets[1]);
  }

  [[noreturn]] void refuse(std::string_view message) const {
    throw SafetensorsError(source_, message);
  }

  void check_size(const HeaderEntry& entry) const {
    const std::uint64_t begin = begin_of(entry), end = end_of(entry);
    const std::string tensor =
        base::concat("tensor ", base::in_quotes(entry.name), ": ");
    if (begin > end)
      refuse(base::concat(tensor, "begin ", begin, " > end ", end));
    if (end > data_.size()) {
      refuse(
          base::concat(tensor, "end ", end, " > ", data_.size(),
                       " bytes of data: the file is cut short; get or write it "
                       "again"));
    }
    const std::string what =
        base::concat(name_of(entry.type), " of shape ",
                     base::shortened(to_string(entry.shape)));
    const auto count = byte_count(entry.type, entry.shape);
    if (!count) refuse(base::concat(tensor, what, " does not fit 63 bits"));
    if (*count != end - begin) {
      refuse(base::concat(tensor, what, " takes ", *count,
                          " bytes, but its offsets hold ", end - begin));
    }
  }

  void check_begin(const HeaderEntry& entry, std::uint64_t covered) const {
    if (begin_of(entry) == covered) return;
    const bool overlap = begin_of(entry) < covered;
    refuse(base::concat("tensor ", base::in_quotes(entry.name), ": begin ",
                        begin_of(entry), overlap ? " < " : " > ", covered,
                        ", where the tensor before it ends: ",
                        overlap ? "they overlap" : "a hole"));
  }

  Bytes data_;
  std::string_view source_;
};

}  // namespace

SafetensorsError::SafetensorsError(std::string_view source,
                                   std::string_view message)
    : std::runtime_error(
          base::concat("[safetensors] ", source, ": ", message)) {}

SafetensorsFile::SafetensorsFile() = default;
SafetensorsFile::SafetensorsFile(SafetensorsFile&& other) noexcept = default;
SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&& other) noexcept =
    default;
SafetensorsFile::~SafetensorsFile() = default;

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) {
  try {
    mapping_ = std::make_unique<const base::MappedFile>(path);
  } catch (const std::runtime_error& error) {
    throw SafetensorsError(path.string(),
                           base::concat("cannot read: ", error.what()));
  }
  read(mapping_->bytes(), path.string());
}

SafetensorsFile SafetensorsFile::parse(std::span<const std::byte> file,
                                       std::string_view source) {
  SafetensorsFile result;
  result.read(file, source);
  return result;
}

void SafetensorsFile::read(std::span<const std::byte> file,
                           std::string_view source) {
  const Parts parts = split(file, source);
  Header header = parse_header(parts.header, source);
  metadata_ = std::move(header.metadata);
  tensors_ = Layout(parts.data, source).views(std::move(header.entries));
  by_name_.resize(tensors_.size());
  std::iota(by_name_.begin(), by_name_.end(), std::size_t{0});
  std::sort(by_name_.begin(), by_name_.end(),
            [this](std::size_t a, std::size_t b) {
              return tensors_[a].name < tensors_[b].name;
            });
}

const TensorView* SafetensorsFile::find(std::string_view name) const {
  const auto found =
      std::lower_bound(by_name_.begin(), by_name_.end(), name,
                       [this](std::size_t index, std::string_view wanted) {
                         return tensors_[index].name < wanted;
                       });
  if (found == by_name_.end() || tensors_[*found].name != name) return nullptr;
  return &tensors_[*found];
}

}  // namespace polyattn::io
