// How many of the examples are used.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace polyattn::train {

// A limit of 0 is none.
inline std::int64_t limited(std::size_t count, std::int64_t limit) {
  const auto all = static_cast<std::int64_t>(count);
  return limit > 0 ? std::min(all, limit) : all;
}

}  // namespace polyattn::train
