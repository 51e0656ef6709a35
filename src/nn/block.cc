#include "polyattn/nn/block.h"

#include "nn/attention_checks.h"

namespace polyattn::nn {

BlockImpl::BlockImpl(const BlockOptions& options_) : options(options_) {
  TORCH_CHECK(options.mlp().dim() == options.dim(), "[Block] mlp dim ",
              options.mlp().dim(), " != attention dim ", options.dim());
  BlockImpl::reset();
}

void BlockImpl::reset() {
  norm1 = register_module("norm1", Norm(options.norm_options()));
  if (options.nystrom()) {
    nystrom = register_module(
        "attention", NystromAttention(nystrom_options_of(options.attention(),
                                                         *options.nystrom())));
  } else {
    attention = register_module("attention", Attention(options.attention()));
  }
  norm2 = register_module("norm2", Norm(options.norm_options()));
  mlp = register_module("mlp", Mlp(options.mlp()));
  if (options.layer_scale()) {
    const LayerScaleOptions scale(options.dim(), *options.layer_scale());
    layer_scale1 = register_module("layer_scale1", LayerScale(scale));
    layer_scale2 = register_module("layer_scale2", LayerScale(scale));
  }
  drop_path = register_module("drop_path",
                              DropPath(DropPathOptions(options.drop_path())));
}

torch::Tensor BlockImpl::forward(const torch::Tensor& x,
                                 const torch::Tensor& mask) {
  const torch::Tensor rows = norm1->forward(x);
  return finish(x, nystrom ? nystrom->forward(rows, mask)
                           : attention->forward(rows, mask));
}

Attention& BlockImpl::attention_with_cache() {
  TORCH_CHECK(
      !nystrom,
      "[Block] Nystrom attention has no cache: each row meets landmarks "
      "of the whole sequence");
  return attention;
}

torch::Tensor BlockImpl::forward(const torch::Tensor& x, KvCache& cache) {
  return finish(x, attention_with_cache()->forward(norm1->forward(x), cache));
}

torch::Tensor BlockImpl::forward(const torch::Tensor& x, DecodeCache& cache) {
  return finish(x, attention_with_cache()->forward(norm1->forward(x), cache));
}

torch::Tensor BlockImpl::finish(const torch::Tensor& x,
                                const torch::Tensor& attended) {
  torch::Tensor branch = attended;
  if (layer_scale1) branch = layer_scale1->forward(branch);
  const torch::Tensor y = x + drop_path->forward(branch);
  branch = mlp->forward(norm2->forward(y));
  if (layer_scale2) branch = layer_scale2->forward(branch);
  return y + drop_path->forward(branch);
}

}  // namespace polyattn::nn
