// Positions of patches on a grid of any size, as sines and cosines of where
// they lie, turned into rows and added:
//
//   y = 2 pi (line + 1) / (lines + 1e-6), x the same with columns
//   p = sin(y / t_0), cos(y / t_0), sin(y / t_1), ..., then those of x
//   t_i = 10000^(i / 16), i from 0 to 15
//   row <- row + projection(p)
//
// Parameters: projection.weight [C, 64, 1, 1], a convolution as XCiT has it,
// projection.bias [C].
#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>

#include "polyattn/nn/short_conv.h"

namespace polyattn::nn {

class FourierPositionsImpl : public torch::nn::Cloneable<FourierPositionsImpl> {
 public:
  explicit FourierPositionsImpl(std::int64_t dim);

  void reset() override;

  // [B, N, C], the patches of the grid line by line.
  torch::Tensor forward(const torch::Tensor& x, const Grid& grid);

  torch::nn::Conv2d projection{nullptr};

 private:
  std::int64_t dim_;
};

TORCH_MODULE(FourierPositions);

}  // namespace polyattn::nn
