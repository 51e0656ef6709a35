// Labels as a JSON array of numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace polyattn::data {

struct LabelLimits {
  std::size_t max_count = 0;
  std::int32_t classes = 0;
};

// Throws DataError, which names the source, unless the text is one flat array
// of integers in [0, classes), at most max_count of them.
std::vector<std::int32_t> parse_labels(std::string_view json,
                                       const LabelLimits& limits,
                                       const std::string& source);

}  // namespace polyattn::data
