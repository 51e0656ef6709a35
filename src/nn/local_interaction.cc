#include "polyattn/nn/local_interaction.h"

#include "nn/depthwise.h"
#include "polyattn/torch/gelu.h"

namespace polyattn::nn {
namespace {

// [B, I, J, C].
torch::Tensor convolved(const torch::Tensor& x,
                        const torch::nn::Conv2dImpl& convolution,
                        torch::ScalarType type) {
  const torch::Tensor taps = convolution.weight.flatten(1).t().to(type);
  return depthwise(x, taps, {3, 3, 1, 1}) + convolution.bias;
}

}  // namespace

LocalInteractionImpl::LocalInteractionImpl(std::int64_t dim) : dim_(dim) {
  TORCH_CHECK(dim > 0, "[LocalInteraction] dim ", dim, " < 1");
  LocalInteractionImpl::reset();
}

void LocalInteractionImpl::reset() {
  const auto options =
      torch::nn::Conv2dOptions(dim_, dim_, 3).padding(1).groups(dim_);
  conv1 = register_module("conv1", torch::nn::Conv2d(options));
  norm = register_module("norm", torch::nn::BatchNorm2d(dim_));
  conv2 = register_module("conv2", torch::nn::Conv2d(options));
}

// Channels stay last in memory.
torch::Tensor LocalInteractionImpl::forward(const torch::Tensor& x,
                                            const Grid& grid) {
  TORCH_CHECK(x.dim() == 3 && x.size(1) == grid.height * grid.width &&
                  x.size(2) == dim_,
              "[LocalInteraction] x of size ", x.sizes(), " is not [B, ",
              grid.height * grid.width, ", ", dim_, "], for a grid of ",
              grid.height, " x ", grid.width);
  // Under autocast rows are narrower than the weights.
  const auto type =
      c10::promoteTypes(x.scalar_type(), conv1->weight.scalar_type());
  torch::Tensor y = x.to(type).unflatten(1, {grid.height, grid.width});
  y = polyattn::gelu(convolved(y, *conv1, type));
  y = norm->forward(y.permute({0, 3, 1, 2})).permute({0, 2, 3, 1});
  return convolved(y, *conv2, type).flatten(1, 2).to(x.scalar_type());
}

}  // namespace polyattn::nn
