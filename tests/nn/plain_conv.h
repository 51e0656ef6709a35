// The short convolution as torch's own, with a group for each channel.
#pragma once

#include <torch/types.h>

#include <optional>

#include "polyattn/nn/short_conv.h"

namespace polyattn::test {

// rows [B, N, C], weight as of ShortConv.
inline torch::Tensor plain_conv(const torch::Tensor& rows,
                                const torch::Tensor& weight,
                                const std::optional<nn::Grid>& grid) {
  using Sizes = std::vector<std::int64_t>;
  const std::int64_t c = rows.size(2);
  const auto x = rows.transpose(1, 2);
  if (!grid) {
    const auto padded = torch::constant_pad_nd(x, {weight.size(2) - 1, 0});
    return torch::conv1d(padded, weight, {}, Sizes{1}, Sizes{0}, Sizes{1}, c)
        .transpose(1, 2);
  }
  const std::int64_t patches = grid->height * grid->width;
  const std::int64_t before = rows.size(1) - patches;
  const auto picture =
      x.narrow(2, before, patches).unflatten(2, {grid->height, grid->width});
  const auto y = torch::conv2d(picture, weight, {}, Sizes{1, 1}, Sizes{1, 1},
                               Sizes{1, 1}, c);
  return torch::cat({x.narrow(2, 0, before), y.flatten(2)}, 2).transpose(1, 2);
}

}  // namespace polyattn::test
