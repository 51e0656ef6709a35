#include "io/tensor_type.h"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

namespace polyattn::io {
namespace {

struct TypeInfo {
  std::string_view name;
  std::size_t size;
};

// Indexed by TensorType.
constexpr std::array<TypeInfo, 13> kTypes = {{{"BOOL", 1},
                                              {"U8", 1},
                                              {"I8", 1},
                                              {"I16", 2},
                                              {"U16", 2},
                                              {"F16", 2},
                                              {"BF16", 2},
                                              {"I32", 4},
                                              {"U32", 4},
                                              {"F32", 4},
                                              {"F64", 8},
                                              {"I64", 8},
                                              {"U64", 8}}};
static_assert(kTypes.size() == static_cast<std::size_t>(TensorType::kU64) + 1);

const TypeInfo& info_of(TensorType type) {
  const auto index = static_cast<std::size_t>(type);
  if (index >= kTypes.size()) {
    throw std::invalid_argument("[safetensors] unknown tensor type " +
                                std::to_string(index));
  }
  return kTypes[index];
}

}  // namespace

std::size_t size_of(TensorType type) { return info_of(type).size; }

std::string_view name_of(TensorType type) { return info_of(type).name; }

std::optional<TensorType> parse_tensor_type(std::string_view name) {
  const auto found =
      std::find_if(kTypes.begin(), kTypes.end(),
                   [name](const TypeInfo& info) { return info.name == name; });
  if (found == kTypes.end()) return std::nullopt;
  return static_cast<TensorType>(found - kTypes.begin());
}

std::optional<std::uint64_t> byte_count(TensorType type,
                                        std::span<const std::int64_t> shape) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  std::uint64_t count = size_of(type);
  bool empty = false;
  for (const std::int64_t size : shape) {
    empty = empty || size == 0;
    const auto factor =
        static_cast<std::uint64_t>(std::max<std::int64_t>(size, 1));
    if (count > kMax / factor) return std::nullopt;
    count *= factor;
  }
  return empty ? 0 : count;
}

std::string to_string(std::span<const std::int64_t> numbers) {
  std::string text = "[";
  for (const std::int64_t number : numbers) {
    if (text.size() > 1) text += ',';
    text += std::to_string(number);
  }
  return text + "]";
}

std::string all_type_names() {
  std::string text;
  for (const TypeInfo& info : kTypes) {
    if (!text.empty()) text += ", ";
    text += info.name;
  }
  return text;
}

}  // namespace polyattn::io
