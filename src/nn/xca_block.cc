#include "polyattn/nn/xca_block.h"

namespace polyattn::nn {
namespace {

LayerScaleOptions scale_options(const XcaBlockOptions& o) {
  return {o.dim(), o.layer_scale()};
}

ClassAttentionOptions class_options(const CrossCovarianceOptions& o) {
  return ClassAttentionOptions(o.dim(), o.heads())
      .activation(o.activation())
      .dropout(o.dropout())
      .projection_dropout(o.projection_dropout());
}

// The first row, and the others.
std::vector<torch::Tensor> split_class(const torch::Tensor& x) {
  return x.split_with_sizes({1, x.size(1) - 1}, 1);
}

}  // namespace

XcaBlockImpl::XcaBlockImpl(const XcaBlockOptions& options_)
    : options(options_) {
  TORCH_CHECK(options.mlp().dim() == options.dim(), "[XcaBlock] mlp dim ",
              options.mlp().dim(), " != attention dim ", options.dim());
  XcaBlockImpl::reset();
}

void XcaBlockImpl::reset() {
  const auto norm = options.norm_options();
  const auto scale = scale_options(options);
  norm1 = register_module("norm1", Norm(norm));
  attention =
      register_module("attention", CrossCovariance(options.attention()));
  layer_scale1 = register_module("layer_scale1", LayerScale(scale));
  norm3 = register_module("norm3", Norm(norm));
  local = register_module("local", LocalInteraction(options.dim()));
  layer_scale3 = register_module("layer_scale3", LayerScale(scale));
  norm2 = register_module("norm2", Norm(norm));
  mlp = register_module("mlp", Mlp(options.mlp()));
  layer_scale2 = register_module("layer_scale2", LayerScale(scale));
  drop_path = register_module("drop_path",
                              DropPath(DropPathOptions(options.drop_path())));
}

torch::Tensor XcaBlockImpl::forward(const torch::Tensor& x, const Grid& grid) {
  torch::Tensor y = x + drop_path->forward(layer_scale1->forward(
                            attention->forward(norm1->forward(x))));
  y = y + drop_path->forward(
              layer_scale3->forward(local->forward(norm3->forward(y), grid)));
  return y + drop_path->forward(
                 layer_scale2->forward(mlp->forward(norm2->forward(y))));
}

ClassBlockImpl::ClassBlockImpl(const XcaBlockOptions& options_,
                               bool tokens_norm)
    : options(options_), tokens_norm_(tokens_norm) {
  TORCH_CHECK(options.mlp().dim() == options.dim(), "[ClassBlock] mlp dim ",
              options.mlp().dim(), " != attention dim ", options.dim());
  ClassBlockImpl::reset();
}

void ClassBlockImpl::reset() {
  const auto norm = options.norm_options();
  const auto scale = scale_options(options);
  norm1 = register_module("norm1", Norm(norm));
  attention = register_module(
      "attention", ClassAttention(class_options(options.attention())));
  layer_scale1 = register_module("layer_scale1", LayerScale(scale));
  norm2 = register_module("norm2", Norm(norm));
  mlp = register_module("mlp", Mlp(options.mlp()));
  layer_scale2 = register_module("layer_scale2", LayerScale(scale));
}

torch::Tensor ClassBlockImpl::forward(const torch::Tensor& x) {
  const torch::Tensor u = norm1->forward(x);
  const torch::Tensor attended =
      torch::cat({attention->forward(u), split_class(u)[1]}, 1);
  torch::Tensor y = x + layer_scale1->forward(attended);
  if (tokens_norm_) y = norm2->forward(y);
  const auto rows = split_class(y);
  const torch::Tensor token = tokens_norm_ ? rows[0] : norm2->forward(rows[0]);
  return torch::cat(
      {token + layer_scale2->forward(mlp->forward(token)), 2 * rows[1]}, 1);
}

}  // namespace polyattn::nn
