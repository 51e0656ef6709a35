#include "polyattn/models/pinn.h"

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include "polyattn/nn/initialise.h"

namespace polyattn::models {

PinnImpl::PinnImpl(const PinnOptions& options_) : options(options_) {
  TORCH_CHECK(options.inputs() > 0, "[Pinn] inputs ", options.inputs(), " < 1");
  TORCH_CHECK(options.outputs() > 0, "[Pinn] outputs ", options.outputs(),
              " < 1");
  TORCH_CHECK(options.hidden() > 0, "[Pinn] hidden ", options.hidden(), " < 1");
  TORCH_CHECK(options.depth() > 1, "[Pinn] depth ", options.depth(), " < 2");
  PinnImpl::reset();
}

void PinnImpl::reset() {
  linear = register_module("linear", torch::nn::Sequential());
  std::int64_t width = options.inputs();
  for (std::int64_t i = 1; i < options.depth(); ++i) {
    linear->push_back(torch::nn::Linear(width, options.hidden()));
    linear->push_back(torch::nn::Tanh());
    width = options.hidden();
  }
  linear->push_back(torch::nn::Linear(width, options.outputs()));
  nn::initialise(*this, {options.initialisation()});
}

torch::Tensor PinnImpl::forward(const torch::Tensor& points) {
  TORCH_CHECK(points.dim() > 0 && points.size(-1) == options.inputs(),
              "[Pinn] points of size ", points.sizes(), " are not [..., ",
              options.inputs(), "]");
  return linear->forward(points);
}

}  // namespace polyattn::models
