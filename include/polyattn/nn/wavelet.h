// The activation of PINNsformer: w1 sin(x) + w2 cos(x), both weights learned.
#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

namespace polyattn::nn {

class WaveletImpl : public torch::nn::Cloneable<WaveletImpl> {
 public:
  WaveletImpl();

  void reset() override;
  torch::Tensor forward(const torch::Tensor& x);

  // Of one element, 1 at first.
  torch::Tensor w1;
  torch::Tensor w2;
};

TORCH_MODULE(Wavelet);

}  // namespace polyattn::nn
