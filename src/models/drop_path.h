// How drop path grows over the blocks of a model.
#pragma once

#include <cstdint>

namespace polyattn::models {

// Of block i: linear from 0 at the first to `last` at the last.
inline double drop_path_of(double last, std::int64_t i, std::int64_t depth) {
  return depth == 1
             ? last
             : last * static_cast<double>(i) / static_cast<double>(depth - 1);
}

}  // namespace polyattn::models
