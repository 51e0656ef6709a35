#include "polyattn/nn/residual.h"

#include <vector>

#include "nn/choice.h"

namespace polyattn::nn {

DropPathImpl::DropPathImpl(const DropPathOptions& options_)
    : options(options_) {
  check_rate("DropPath", "rate", options.rate());
}

torch::Tensor DropPathImpl::forward(const torch::Tensor& x) {
  if (!is_training() || options.rate() == 0) return x;
  const double keep = 1 - options.rate();
  std::vector<std::int64_t> size(static_cast<std::size_t>(x.dim()), 1);
  size[0] = x.size(0);
  return x * torch::empty(size, x.options()).bernoulli_(keep).div_(keep);
}

LayerScaleImpl::LayerScaleImpl(const LayerScaleOptions& options_)
    : options(options_) {
  LayerScaleImpl::reset();
}

void LayerScaleImpl::reset() {
  weight = register_parameter("weight", torch::empty({options.dim()}));
  reset_parameters();
}

void LayerScaleImpl::reset_parameters() {
  const torch::NoGradGuard no_grad;
  weight.fill_(options.initial());
}

torch::Tensor LayerScaleImpl::forward(const torch::Tensor& x) {
  return x * weight;
}

}  // namespace polyattn::nn
