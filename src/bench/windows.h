// Attention within the windows of images, as Swin has it: a bias that all
// windows share, and a mask of each window, the same for every image.
#pragma once

#include <torch/types.h>

#include <cstdint>

namespace polyattn::bench {

struct Windows {
  torch::Tensor bias;     // [H, N, N], learned
  torch::Tensor mask;     // bool [W, 1, N, N]
  torch::Tensor added;    // 0 or -inf, as the mask
  torch::Tensor divided;  // 1/sqrt(keys that are seen) or 0, as the mask
};

// Of `count` windows of side x side patches, shifted by half a side: all but
// the first hold patches that were not neighbours.
Windows draw_windows(std::int64_t count, std::int64_t heads, std::int64_t side);

}  // namespace polyattn::bench
