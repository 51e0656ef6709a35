#include "data/mat_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/gzip.h"
#include "data/mat_bytes.h"
#include "data/sets.h"

namespace polyattn::data {
namespace {

constexpr std::size_t kHeaderBytes = 128;
constexpr std::size_t kVersionAt = 124;
constexpr std::uint64_t kVersion5 = 0x0100;
constexpr std::uint64_t kVersion73 = 0x0200;
constexpr std::uint64_t kMaxContent = std::uint64_t{1} << 28;
constexpr std::size_t kLeastElement = 8;  // bytes of a tag
constexpr std::uint64_t kStructClass = 2;
constexpr std::uint64_t kCharClass = 4;
constexpr std::uint64_t kFirstNumberClass = 6;  // double
constexpr std::uint64_t kLastNumberClass = 15;  // uint64

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What every array begins with.
struct ArrayHead {
  std::uint64_t class_number = 0;
  std::uint64_t rows = 0, count = 0;  // of its first dimension, of all
  std::string name;
};

ArrayHead read_head(MatBytes& array) {
  ArrayHead head;
  const auto flags = array.next(MatType::kUint32, "the flags of an array").data;
  if (flags.size() != 8) array.refuse("the flags of an array have no 8 bytes");
  head.class_number = unsigned_at(flags.first(1));
  const auto sides = array.next(MatType::kInt32, "the size of an array").data;
  if (sides.size() < 8 || sides.size() % 4 != 0) {
    array.refuse("an array has fewer than two dimensions");
  }
  head.rows = unsigned_at(sides.first(4));
  head.count = 1;
  for (std::size_t i = 0; i < sides.size(); i += 4) {
    const std::uint64_t side = unsigned_at(sides.subspan(i, 4));
    if (side > kMaxContent || (side > 0 && head.count > kMaxContent / side)) {
      array.refuse("an array is larger than its file");
    }
    head.count *= side;
  }
  head.name = text_of(array.next(MatType::kInt8, "the name of an array").data);
  return head;
}

std::string characters(const MatElement& element, MatBytes& array) {
  std::size_t width = number_size(element.type);
  if (element.type == MatType::kUtf8) width = 1;
  if (width != 1 && width != 2) array.refuse("letters have an unknown type");
  std::string text;
  for (std::size_t i = 0; i + width <= element.data.size(); i += width) {
    const std::uint64_t letter = unsigned_at(element.data.subspan(i, width));
    text += letter < 0x80 ? static_cast<char>(letter) : '?';
  }
  return text;
}

MatValue read_value(MatBytes& cells, const std::string& source) {
  const auto matrix = cells.next(MatType::kMatrix, "a field").data;
  if (matrix.empty()) return {};
  MatBytes array(matrix, source);
  const ArrayHead head = read_head(array);
  MatValue value;
  const bool is_number = head.class_number >= kFirstNumberClass &&
                         head.class_number <= kLastNumberClass;
  if (is_number && head.count == 1) {
    const MatElement real = array.next();
    if (number_size(real.type) == 0 ||
        real.data.size() != number_size(real.type)) {
      array.refuse("a number has not the length of its type");
    }
    value.number = number_of(real.type, real.data);
  } else if (head.class_number == kCharClass && head.count > 0 &&
             head.rows == 1) {
    value.text = characters(array.next(), array);
    // Of letters in UTF-8 there may be more bytes than letters.
    if (value.text->size() < head.count) {
      array.refuse("a text is shorter than it says");
    }
  }
  return value;
}

std::vector<std::string> read_fields(MatBytes& array) {
  const auto length =
      array.next(MatType::kInt32, "the length of field names").data;
  const std::uint64_t width = unsigned_at(length);
  const auto names = array.next(MatType::kInt8, "field names").data;
  if (length.size() != 4 || width == 0 || names.empty() ||
      names.size() % width != 0) {
    array.refuse("the field names are no multiple of their length");
  }
  std::vector<std::string> fields;
  for (std::size_t at = 0; at < names.size(); at += width) {
    const std::string name = text_of(names.subspan(at, width));
    fields.push_back(name.substr(0, name.find('\0')));
  }
  return fields;
}

MatStruct read_struct(MatBytes& array, const ArrayHead& head, std::size_t bytes,
                      const std::string& source) {
  MatStruct found;
  found.fields = read_fields(array);
  if (head.count > bytes / kLeastElement / found.fields.size()) {
    array.refuse(fmt::format("{} has {} elements, more than its bytes hold",
                             head.name, head.count));
  }
  for (std::uint64_t i = 0; i < head.count; ++i) {
    std::vector<MatValue>& element = found.elements.emplace_back();
    for (std::size_t f = 0; f < found.fields.size(); ++f) {
      element.push_back(read_value(array, source));
    }
  }
  return found;
}

// The struct, if that is what the array holds.
std::optional<MatStruct> struct_in(std::span<const std::byte> matrix,
                                   std::string_view variable,
                                   const std::string& source) {
  MatBytes array(matrix, source);
  const ArrayHead head = read_head(array);
  if (head.name != variable) return std::nullopt;
  if (head.class_number != kStructClass) {
    array.refuse(fmt::format("{} is no struct", variable));
  }
  return read_struct(array, head, matrix.size(), source);
}

void check_header(std::span<const std::byte> bytes, const std::string& source) {
  const auto refuse = [&](const char* reason) {
    throw DataError(fmt::format("{}: {}", source, reason));
  };
  if (bytes.size() < kHeaderBytes) {
    refuse("it is shorter than the header of a file of MATLAB");
  }
  const std::uint64_t version = unsigned_at(bytes.subspan(kVersionAt, 2));
  const std::string order = text_of(bytes.subspan(kVersionAt + 2, 2));
  if (order == "MI") refuse("it is big endian, which is not read");
  if (order != "IM") refuse("this is no file of MATLAB, version 5");
  if (version == kVersion73) {
    refuse("it is of MATLAB 7.3 (HDF5), only version 5 is read");
  }
  if (version != kVersion5) refuse("this is no file of MATLAB, version 5");
}

}  // namespace

std::size_t MatStruct::field(std::string_view name,
                             const std::string& source) const {
  const auto found = std::find(fields.begin(), fields.end(), name);
  if (found == fields.end()) {
    throw DataError(fmt::format("{}: there is no field {}", source, name));
  }
  return static_cast<std::size_t>(found - fields.begin());
}

MatStruct read_mat_struct(std::span<const std::byte> bytes,
                          std::string_view variable,
                          const std::string& source) {
  check_header(bytes, source);
  MatBytes file(bytes.subspan(kHeaderBytes), source);
  while (!file.at_end()) {
    MatElement element = file.next();
    std::vector<std::byte> content;
    if (element.type == MatType::kCompressed) {
      content = inflate_zlib(element.data, kMaxContent, source);
      element = MatBytes(content, source).next();
    }
    if (element.type != MatType::kMatrix || element.data.empty()) continue;
    if (auto found = struct_in(element.data, variable, source)) return *found;
  }
  throw DataError(fmt::format("{}: there is no variable {}", source, variable));
}

}  // namespace polyattn::data
