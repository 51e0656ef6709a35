#include "polyattn/nn/mlp.h"

#include "nn/choice.h"
#include "polyattn/torch/gelu.h"

namespace polyattn::nn {

MlpImpl::MlpImpl(const MlpOptions& options_) : options(options_) {
  TORCH_CHECK(options.dim() > 0, "[Mlp] dim ", options.dim(), " < 1");
  TORCH_CHECK(options.hidden() > 0, "[Mlp] hidden ", options.hidden(), " < 1");
  check_choice("Mlp", "approximate", options.approximate(), {"none", "tanh"});
  check_rate("Mlp", "dropout", options.dropout());
  MlpImpl::reset();
}

void MlpImpl::reset() {
  using torch::nn::Linear;
  using torch::nn::LinearOptions;
  fc1 = register_module(
      "fc1",
      Linear(
          LinearOptions(options.dim(), options.hidden()).bias(options.bias())));
  fc2 = register_module(
      "fc2",
      Linear(
          LinearOptions(options.hidden(), options.dim()).bias(options.bias())));
}

torch::Tensor MlpImpl::forward(const torch::Tensor& x) {
  torch::Tensor y = fc1->forward(x);
  if (options.approximate() != "none") {
    y = torch::gelu(y, options.approximate());
  } else {
    y = other_gelu_ ? other_gelu_(y) : polyattn::gelu(y);
  }
  y = torch::dropout(y, options.dropout(), is_training());
  y = fc2->forward(y);
  return torch::dropout(y, options.dropout(), is_training());
}

}  // namespace polyattn::nn
