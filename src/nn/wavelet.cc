#include "polyattn/nn/wavelet.h"

namespace polyattn::nn {

WaveletImpl::WaveletImpl() { WaveletImpl::reset(); }

void WaveletImpl::reset() {
  w1 = register_parameter("w1", torch::ones({1}));
  w2 = register_parameter("w2", torch::ones({1}));
}

torch::Tensor WaveletImpl::forward(const torch::Tensor& x) {
  return w1 * x.sin() + w2 * x.cos();
}

}  // namespace polyattn::nn
