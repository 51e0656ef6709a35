// Convolution of each channel by itself, of rows on a grid, with zeros beyond
// its edges:
//
//   y[b, i, j] = sum_{s, t} taps[s, t] * x[b, i + s - top, j + t - left]
//
// where x, y and taps are rows of C channels. torch's own depthwise convolution
// wants channels before places, and so would turn the rows around and back.
#pragma once

#include <torch/types.h>

#include "nn/depthwise_rows.h"

namespace polyattn::nn {

// x [B, I, J, C], taps [height * width, C] -> [B, I, J, C]. In f32 on the CPU
// it is one pass, and another for each gradient; otherwise in torch ops.
torch::Tensor depthwise(const torch::Tensor& x, const torch::Tensor& taps,
                        const Window& window);

}  // namespace polyattn::nn
