// Writing: checks, the order of the tensors, the header, the file.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

#include "base/atomic_file.h"
#include "base/message.h"
#include "io/safetensors_header.h"
#include "io/tensor_type.h"
#include "polyattn/io/safetensors.h"

namespace polyattn::io {
namespace {

constexpr std::size_t kAlignment = 8;  // of the header and so of the data

// What to write: the header with its length before it, then the bytes of the
// tensors in this order.
struct Plan {
  std::string start;
  std::vector<const TensorView*> order;
};

class Planner {
 public:
  explicit Planner(std::string_view source) : source_(source) {}

  Plan plan(std::span<const TensorView> tensors,
            const Metadata& metadata) const {
    Plan result;
    for (const TensorView& tensor : tensors) {
      check(tensor);
      result.order.push_back(&tensor);
    }
    sort(result.order);
    std::string header = header_of(result.order, metadata);
    header.resize((header.size() + kAlignment - 1) / kAlignment * kAlignment,
                  ' ');
    if (header.size() > kMaxHeaderBytes) {
      refuse(base::concat("header length ", header.size(), " > limit ",
                          kMaxHeaderBytes));
    }
    for (std::size_t i = 0; i < 8; ++i) {
      result.start += static_cast<char>(header.size() >> (8 * i) & 0xff);
    }
    result.start += header;
    return result;
  }

 private:
  [[noreturn]] void refuse(std::string_view message) const {
    throw SafetensorsError(source_, message);
  }

  void check(const TensorView& tensor) const {
    const std::string who =
        base::concat("tensor ", base::in_quotes(tensor.name), ": ");
    if (tensor.name == kMetadataKey) {
      refuse(base::concat(who, "the name is reserved for metadata"));
    }
    if (tensor.type > TensorType::kU64) {
      refuse(base::concat(who, "unknown type ", static_cast<int>(tensor.type)));
    }
    const std::string what =
        base::concat(name_of(tensor.type), " of shape ",
                     base::shortened(to_string(tensor.shape)));
    const bool negative =
        std::any_of(tensor.shape.begin(), tensor.shape.end(),
                    [](std::int64_t size) { return size < 0; });
    if (negative) refuse(base::concat(who, what, " has a size < 0"));
    const auto count = byte_count(tensor.type, tensor.shape);
    if (!count) refuse(base::concat(who, what, " does not fit 63 bits"));
    if (*count != tensor.bytes.size()) {
      refuse(base::concat(who, what, " takes ", *count, " bytes, but has ",
                          tensor.bytes.size()));
    }
  }

  void sort(std::vector<const TensorView*>& order) const {
    std::sort(order.begin(), order.end(),
              [](const TensorView* a, const TensorView* b) {
                return a->type != b->type ? a->type > b->type
                                          : a->name < b->name;
              });
    std::vector<std::string_view> names;
    names.reserve(order.size());
    for (const TensorView* tensor : order) names.push_back(tensor->name);
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) {
      refuse(
          base::concat("two tensors have the name ", base::in_quotes(*twice)));
    }
  }

  std::string header_of(const std::vector<const TensorView*>& order,
                        const Metadata& metadata) const {
    std::string text = "{";
    if (!metadata.empty()) text += metadata_entry(metadata);
    std::uint64_t begin = 0;
    for (const TensorView* tensor : order) {
      const std::uint64_t end = begin + tensor->bytes.size();
      if (text.size() > 1) text += ',';
      text += base::concat(json_string("tensor name", tensor->name),
                           ":{\"dtype\":\"", name_of(tensor->type),
                           "\",\"shape\":", to_string(tensor->shape),
                           ",\"data_offsets\":[", begin, ",", end, "]}");
      begin = end;
    }
    return text + "}";
  }

  std::string metadata_entry(const Metadata& metadata) const {
    std::string text = base::concat("\"", kMetadataKey, "\":{");
    for (const auto& [key, value] : metadata) {
      if (text.back() != '{') text += ',';
      text += base::concat(json_string("metadata key", key), ":",
                           json_string("metadata value", value));
    }
    return text + "}";
  }

  std::string json_string(std::string_view what,
                          const std::string& text) const {
    try {
      return nlohmann::json(text).dump();
    } catch (const nlohmann::json::type_error&) {
      refuse(base::concat(what, " ", base::in_quotes(text), " is not UTF-8"));
    }
  }

  std::string_view source_;
};

// Hands the file to `sink`, piece by piece.
template <typename Sink>
void emit(const Plan& plan, const Sink& sink) {
  sink(std::as_bytes(std::span(plan.start)));
  for (const TensorView* tensor : plan.order) sink(tensor->bytes);
}

}  // namespace

void write_safetensors(const std::filesystem::path& path,
                       std::span<const TensorView> tensors,
                       const Metadata& metadata) {
  const Plan plan = Planner(path.string()).plan(tensors, metadata);
  try {
    base::AtomicFile file(path);
    emit(plan, [&](std::span<const std::byte> bytes) { file.write(bytes); });
    file.commit();
  } catch (const std::system_error& error) {
    throw SafetensorsError(
        path.string(), base::concat("cannot write: ", error.code().message()));
  }
}

std::vector<std::byte> serialize_safetensors(
    std::span<const TensorView> tensors, const Metadata& metadata) {
  const Plan plan = Planner("memory").plan(tensors, metadata);
  std::vector<std::byte> file;
  emit(plan, [&](std::span<const std::byte> bytes) {
    file.insert(file.end(), bytes.begin(), bytes.end());
  });
  return file;
}

}  // namespace polyattn::io
