#include "data/mat_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "data/sets.h"

namespace polyattn::data {
namespace {

constexpr std::size_t kTagBytes = 8;
constexpr std::size_t kWordBytes = 4;

}  // namespace

void MatBytes::refuse(std::string_view reason) const {
  throw DataError(fmt::format("{}: {}", source_, reason));
}

std::span<const std::byte> MatBytes::take(std::uint64_t count) {
  if (count > rest_.size()) refuse("the file of MATLAB is cut short");
  const auto part = rest_.first(static_cast<std::size_t>(count));
  rest_ = rest_.subspan(part.size());
  return part;
}

MatElement MatBytes::next() {
  const auto tag = take(kTagBytes);
  const std::uint64_t word = unsigned_at(tag.first(kWordBytes));
  const auto type = static_cast<std::uint32_t>(word & 0xffffU);
  // Short data, with its length in the upper half.
  if (const std::uint64_t size = word >> 16; size > 0) {
    if (size > kWordBytes) refuse("a short element has more than four bytes");
    return {MatType{type},
            tag.subspan(kWordBytes, static_cast<std::size_t>(size))};
  }
  const std::uint64_t size = unsigned_at(tag.subspan(kWordBytes));
  const MatElement element{MatType{type}, take(size)};
  if (element.type != MatType::kCompressed) {
    take(std::min<std::uint64_t>(rest_.size(), (8 - size % 8) % 8));
  }
  return element;
}

MatElement MatBytes::next(MatType type, const char* what) {
  const MatElement element = next();
  if (element.type != type) {
    refuse(fmt::format("{} has type {}, must have {}", what,
                       static_cast<std::uint32_t>(element.type),
                       static_cast<std::uint32_t>(type)));
  }
  return element;
}

std::uint64_t unsigned_at(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  }
  return value;
}

std::size_t number_size(MatType type) {
  using enum MatType;
  switch (type) {
    case kInt8:
    case kUint8:
      return 1;
    case kInt16:
    case kUint16:
      return 2;
    case kInt32:
    case kUint32:
    case kSingle:
      return 4;
    case kDouble:
    case kInt64:
    case kUint64:
      return 8;
    default:
      return 0;
  }
}

double number_of(MatType type, std::span<const std::byte> bytes) {
  using enum MatType;
  const std::uint64_t bits = unsigned_at(bytes);
  switch (type) {
    case kSingle:
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    case kDouble:
      return std::bit_cast<double>(bits);
    case kInt8:
      return static_cast<std::int8_t>(bits);
    case kInt16:
      return static_cast<std::int16_t>(bits);
    case kInt32:
      return static_cast<std::int32_t>(bits);
    case kInt64:
      return static_cast<double>(static_cast<std::int64_t>(bits));
    default:
      return static_cast<double>(bits);
  }
}

}  // namespace polyattn::data
