// The elements that a file of MATLAB consists of: a tag of type and length,
// then the data, filled up to eight bytes; or both in eight bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace polyattn::data {

enum class MatType : std::uint32_t {
  kInt8 = 1,
  kUint8 = 2,
  kInt16 = 3,
  kUint16 = 4,
  kInt32 = 5,
  kUint32 = 6,
  kSingle = 7,
  kDouble = 9,
  kInt64 = 12,
  kUint64 = 13,
  kMatrix = 14,
  kCompressed = 15,
  kUtf8 = 16,
};

struct MatElement {
  MatType type;
  std::span<const std::byte> data;
};

// Elements one after the other. Throws DataError, which names the source.
class MatBytes {
 public:
  MatBytes(std::span<const std::byte> bytes, const std::string& source)
      : rest_(bytes), source_(source) {}

  bool at_end() const { return rest_.empty(); }
  MatElement next();
  MatElement next(MatType type, const char* what);

  [[noreturn]] void refuse(std::string_view reason) const;

 private:
  std::span<const std::byte> take(std::uint64_t count);

  std::span<const std::byte> rest_;
  const std::string& source_;
};

// Little endian, of up to eight bytes.
std::uint64_t unsigned_at(std::span<const std::byte> bytes);

// How many bytes a number of this type has; 0 if it is no type of numbers.
std::size_t number_size(MatType type);

// `bytes` are exactly one number of the type.
double number_of(MatType type, std::span<const std::byte> bytes);

}  // namespace polyattn::data
