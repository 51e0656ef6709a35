// Local patch interaction (LPI, of XCiT), for the patches of a picture: a 3 x 3
// convolution of each channel by itself, gelu, BatchNorm, and another one.
//
//   y = conv2(norm(gelu(conv1(x))))
//
// Parameters: conv1.weight and conv2.weight [C, 1, 3, 3], conv1.bias and
// conv2.bias [C], norm.weight and norm.bias [C]. Buffers: norm.running_mean and
// norm.running_var [C], norm.num_batches_tracked.
#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>

#include "polyattn/nn/short_conv.h"

namespace polyattn::nn {

class LocalInteractionImpl : public torch::nn::Cloneable<LocalInteractionImpl> {
 public:
  explicit LocalInteractionImpl(std::int64_t dim);

  void reset() override;

  // [B, N, C], the patches of the grid line by line -> [B, N, C].
  torch::Tensor forward(const torch::Tensor& x, const Grid& grid);

  torch::nn::Conv2d conv1{nullptr};
  torch::nn::BatchNorm2d norm{nullptr};
  torch::nn::Conv2d conv2{nullptr};

 private:
  std::int64_t dim_;
};

TORCH_MODULE(LocalInteraction);

}  // namespace polyattn::nn
