#include "polyattn/nn/norm.h"

#include "nn/choice.h"

namespace polyattn::nn {

NormImpl::NormImpl(const NormOptions& options_) : options(options_) {
  check_choice("Norm", "kind", options.kind(), {"layer", "rms"});
  TORCH_CHECK(options.dim() > 0, "[Norm] dim ", options.dim(), " < 1");
  NormImpl::reset();
}

void NormImpl::reset() {
  weight = register_parameter("weight", torch::empty({options.dim()}));
  if (options.kind() == "layer" && options.bias()) {
    bias = register_parameter("bias", torch::empty({options.dim()}));
  }
  reset_parameters();
}

void NormImpl::reset_parameters() {
  const torch::NoGradGuard no_grad;
  weight.fill_(1);
  if (bias.defined()) bias.zero_();
}

torch::Tensor NormImpl::forward(const torch::Tensor& x) {
  TORCH_CHECK(x.dim() >= 1 && x.size(-1) == options.dim(), "[Norm] x of size ",
              x.sizes(), " does not end in dim ", options.dim());
  if (options.kind() == "layer") {
    return torch::layer_norm(x, {options.dim()}, weight, bias, options.eps());
  }
  // In 16 bits the squares would overflow or lose most of their digits.
  const bool narrow = x.element_size() < 4;
  const torch::Tensor wide = narrow ? x.to(torch::kFloat) : x;
  const torch::Tensor mean_sq = wide.square().mean(-1, /*keepdim=*/true);
  const torch::Tensor y = wide * torch::rsqrt(mean_sq + options.eps());
  return y.to(x.scalar_type()) * weight;
}

}  // namespace polyattn::nn
