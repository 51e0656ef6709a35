// Small things that the kinds of examples share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "train/examples.h"

namespace polyattn::train {

// How many of `count` examples are used; a limit of 0 is none.
inline std::int64_t limited(std::size_t count, std::int64_t limit) {
  const auto all = static_cast<std::int64_t>(count);
  return limit > 0 ? std::min(all, limit) : all;
}

// mixup: image i becomes share * image i + (1 - share) * image B - 1 - i.
void mix_with_reverse(Batch& batch);

}  // namespace polyattn::train
