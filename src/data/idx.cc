#include "data/idx.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

#include "data/file.h"
#include "data/gzip.h"

namespace polyattn::data {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kUnsignedByte = 0x08;

[[noreturn]] void refuse(const std::string& source, const std::string& reason) {
  throw DataError(fmt::format("{}: {}", source, reason));
}

unsigned byte_at(std::span<const std::byte> bytes, std::size_t i) {
  return std::to_integer<unsigned>(bytes[i]);
}

// A big-endian number of four bytes.
std::size_t size_at(std::span<const std::byte> bytes, std::size_t i) {
  return std::size_t{byte_at(bytes, i)} << 24 | byte_at(bytes, i + 1) << 16 |
         byte_at(bytes, i + 2) << 8 | byte_at(bytes, i + 3);
}

std::size_t checked_rank(std::span<const std::byte> bytes,
                         const std::string& source) {
  constexpr std::size_t kMaxRank = 8;
  if (bytes.size() < 4 || byte_at(bytes, 0) != 0 || byte_at(bytes, 1) != 0) {
    refuse(source, "this is not an idx file: it does not begin with two zeros");
  }
  if (byte_at(bytes, 2) != kUnsignedByte) {
    refuse(source, fmt::format("its numbers are of type 0x{:02x}, expected are "
                               "unsigned bytes, 0x08",
                               byte_at(bytes, 2)));
  }
  const std::size_t rank = byte_at(bytes, 3);
  if (rank == 0 || rank > kMaxRank) {
    refuse(source, fmt::format("it claims {} dimensions", rank));
  }
  return rank;
}

// The name before its ending, which people write in two ways.
struct IdxName {
  const char* stem;  // "train-images"
  int rank;
};

// Empty if there is none.
fs::path find_file(const fs::path& folder, const IdxName& name) {
  for (const char* separator : {"-", "."}) {
    for (const char* ending : {"", ".gz"}) {
      fs::path path = folder / fmt::format("{}{}idx{}-ubyte{}", name.stem,
                                           separator, name.rank, ending);
      std::error_code error;
      if (fs::is_regular_file(path, error)) return path;
    }
  }
  return {};
}

struct IdxFile {
  std::string source;
  std::vector<std::byte> bytes;
  IdxArray array;
};

IdxFile read_idx(const fs::path& folder, const IdxName& name) {
  const fs::path path = find_file(folder, name);
  if (path.empty()) {
    refuse(folder.string(),
           fmt::format("there is no {}-idx{}-ubyte or {}-idx{}-ubyte.gz",
                       name.stem, name.rank, name.stem, name.rank));
  }
  IdxFile file{.source = path.string(), .bytes = read_bytes(path), .array = {}};
  if (is_gzip(file.bytes)) {
    file.bytes = gunzip(file.bytes, kMaxFileBytes, file.source);
  }
  file.array = parse_idx(file.bytes, file.source);
  const std::size_t rank = file.array.shape.size();
  if (rank != static_cast<std::size_t>(name.rank)) {
    refuse(file.source, fmt::format("it has {} dimensions, expected are {}",
                                    rank, name.rank));
  }
  return file;
}

ImageSet load_split(const fs::path& folder, const std::string& split) {
  const std::string images_stem = split + "-images";
  const std::string labels_stem = split + "-labels";
  const IdxFile images = read_idx(folder, {images_stem.c_str(), 3});
  const IdxFile labels = read_idx(folder, {labels_stem.c_str(), 1});
  const auto& shape = images.array.shape;
  if (shape[0] != labels.array.shape[0]) {
    refuse(images.source,
           fmt::format("it has {} images, but {} has {} labels", shape[0],
                       labels.source, labels.array.shape[0]));
  }
  ImageSet set{.channels = 1,
               .height = static_cast<std::int64_t>(shape[1]),
               .width = static_cast<std::int64_t>(shape[2]),
               .pixels = {},
               .labels = {}};
  const auto* pixels =
      reinterpret_cast<const std::uint8_t*>(images.array.values.data());
  set.pixels.assign(pixels, pixels + images.array.values.size());
  set.labels.reserve(labels.array.values.size());
  for (const std::byte label : labels.array.values) {
    set.labels.push_back(std::to_integer<std::int32_t>(label));
  }
  return set;
}

}  // namespace

IdxArray parse_idx(std::span<const std::byte> bytes,
                   const std::string& source) {
  const std::size_t rank = checked_rank(bytes, source);
  const std::size_t header = 4 + 4 * rank;
  if (bytes.size() < header) {
    refuse(source, fmt::format("it ends within its header, after {} of {} "
                               "bytes; get it again",
                               bytes.size(), header));
  }
  IdxArray array{.shape = {}, .values = bytes.subspan(header)};
  std::size_t count = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t size = size_at(bytes, 4 + 4 * i);
    if (size == 0) refuse(source, "it is empty: one of its dimensions is 0");
    if (count > std::numeric_limits<std::size_t>::max() / size) {
      refuse(source, "the product of its dimensions is absurd");
    }
    count *= size;
    array.shape.push_back(size);
  }
  if (array.values.size() != count) {
    refuse(source, fmt::format("its header says {} ({} bytes), but {} bytes "
                               "follow; get it again",
                               fmt::join(array.shape, " x "), count,
                               array.values.size()));
  }
  return array;
}

bool is_idx_folder(const fs::path& folder) {
  return !find_file(folder, {"train-images", 3}).empty() ||
         !find_file(folder, {"t10k-images", 3}).empty();
}

ImageSplits load_idx_folder(const fs::path& folder) {
  ImageSplits splits{.train = load_split(folder, "train"),
                     .test = load_split(folder, "t10k"),
                     .class_names = {}};
  const ImageSet& a = splits.train;
  const ImageSet& b = splits.test;
  if (a.height != b.height || a.width != b.width) {
    refuse(folder.string(),
           fmt::format("the training images are {} x {}, the test images {} x "
                       "{}",
                       a.height, a.width, b.height, b.width));
  }
  return splits;
}

}  // namespace polyattn::data
