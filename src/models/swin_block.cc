// What stages of Swin are made of.
#include <torch/utils.h>

#include "polyattn/models/swin.h"

namespace polyattn::models {

SwinBlockImpl::SwinBlockImpl(const SwinBlockOptions& options_)
    : options(options_) {
  TORCH_CHECK(options.mlp().dim() == options.attention().dim(),
              "[SwinBlock] mlp dim ", options.mlp().dim(), " != attention dim ",
              options.attention().dim());
  SwinBlockImpl::reset();
}

void SwinBlockImpl::reset() {
  const std::int64_t dim = options.attention().dim();
  norm1 = register_module("norm1", nn::Norm(dim));
  attention =
      register_module("attention", nn::WindowAttention(options.attention()));
  norm2 = register_module("norm2", nn::Norm(dim));
  mlp = register_module("mlp", nn::Mlp(options.mlp()));
  if (options.layer_scale()) {
    const nn::LayerScaleOptions scale(dim, *options.layer_scale());
    layer_scale1 = register_module("layer_scale1", nn::LayerScale(scale));
    layer_scale2 = register_module("layer_scale2", nn::LayerScale(scale));
  }
  drop_path = register_module("drop_path", nn::DropPath(options.drop_path()));
}

torch::Tensor SwinBlockImpl::add(const torch::Tensor& x,
                                 const torch::Tensor& branch,
                                 nn::LayerScale& scale) {
  return x + drop_path->forward(scale ? scale->forward(branch) : branch);
}

torch::Tensor SwinBlockImpl::forward(const torch::Tensor& x) {
  if (options.post_norm()) {
    const torch::Tensor y =
        add(x, norm1->forward(attention->forward(x)), layer_scale1);
    return add(y, norm2->forward(mlp->forward(y)), layer_scale2);
  }
  const torch::Tensor y =
      add(x, attention->forward(norm1->forward(x)), layer_scale1);
  return add(y, mlp->forward(norm2->forward(y)), layer_scale2);
}

PatchMergingImpl::PatchMergingImpl(const PatchMergingOptions& options_)
    : options(options_) {
  TORCH_CHECK(options.dim() > 0, "[PatchMerging] dim ", options.dim(), " < 1");
  PatchMergingImpl::reset();
}

void PatchMergingImpl::reset() {
  using torch::nn::LinearOptions;
  const std::int64_t dim = options.dim();
  reduction = register_module(
      "reduction",
      torch::nn::Linear(LinearOptions(4 * dim, 2 * dim).bias(false)));
  norm = register_module("norm",
                         nn::Norm(options.post_norm() ? 2 * dim : 4 * dim));
}

// Of the four tokens the columns go slowest: (0, 0), (1, 0), (0, 1), (1, 1).
torch::Tensor PatchMergingImpl::forward(const torch::Tensor& x) {
  TORCH_CHECK(x.dim() == 4 && x.size(3) == options.dim(),
              "[PatchMerging] x of size ", x.sizes(),
              " is not [B, height, width, ", options.dim(), "]");
  torch::Tensor y = x;
  const std::int64_t below = x.size(1) % 2, right = x.size(2) % 2;
  if (below + right > 0) {
    y = torch::constant_pad_nd(y, {0, 0, 0, right, 0, below});
  }
  y = y.reshape({y.size(0), y.size(1) / 2, 2, y.size(2) / 2, 2, -1})
          .permute({0, 1, 3, 4, 2, 5})
          .flatten(3);
  return options.post_norm() ? norm->forward(reduction->forward(y))
                             : reduction->forward(norm->forward(y));
}

}  // namespace polyattn::models
