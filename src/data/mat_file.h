// A struct array out of a file of MATLAB (version 5, little endian, compressed
// or not): as much of the format as the development kit of ImageNet needs.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace polyattn::data {

// What a field of one element holds; neither if it is anything else, such as a
// longer list of numbers.
struct MatValue {
  std::optional<double> number;     // 1 x 1
  std::optional<std::string> text;  // one row; what is not ASCII is '?'
};

struct MatStruct {
  std::vector<std::string> fields;
  std::vector<std::vector<MatValue>>
      elements;  // column by column, each by field

  // The place of a field; throws DataError.
  std::size_t field(std::string_view name, const std::string& source) const;
};

// The variable of that name. Throws DataError, which names the source, if there
// is none or it is no struct, and for everything that is damaged, cut short or
// of another version.
MatStruct read_mat_struct(std::span<const std::byte> bytes,
                          std::string_view variable, const std::string& source);

}  // namespace polyattn::data
