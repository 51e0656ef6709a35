#include "polyattn/nn/norm.h"

#include "nn/choice.h"
#include "nn/rms_norm.h"

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
  // Rows come in lower precision than the weight under autocast, and in 16 bits
  // squares would overflow or lose most of their digits.
  const auto type = c10::promoteTypes(
      torch::kFloat, c10::promoteTypes(x.scalar_type(), weight.scalar_type()));
  const torch::Tensor wide = x.to(type), w = weight.to(type);
  if (options.kind() == "layer") {
    const torch::Tensor b = bias.defined() ? bias.to(type) : bias;
    return torch::layer_norm(wide, {options.dim()}, w, b, options.eps())
        .to(x.scalar_type());
  }
  return rms_norm(wide, w, options.eps()).to(x.scalar_type());
}

}  // namespace polyattn::nn
