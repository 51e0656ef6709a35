// The blocks of XCiT, normalised before each branch. That of the patches:
//
//   x = x + drop_path(layer_scale1(attention(norm1(x))))     channels
//   x = x + drop_path(layer_scale3(local(norm3(x))))         neighbours
//   x = x + drop_path(layer_scale2(mlp(norm2(x))))
//
// and that of the class token, which is the first row:
//
//   u = norm1(x), its first row replaced by attention(u)
//   x = x + layer_scale1(u)
//   x = norm2(x), all rows (tokens_norm) or the first one
//   the first row of x = itself + layer_scale2(mlp(itself)), all others 2 x
//
// The last lines are those of the published models: patches gain of u too, and
// are doubled.
#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <string>

#include "polyattn/nn/class_attention.h"
#include "polyattn/nn/cross_covariance.h"
#include "polyattn/nn/local_interaction.h"
#include "polyattn/nn/mlp.h"
#include "polyattn/nn/norm.h"
#include "polyattn/nn/residual.h"

namespace polyattn::nn {

struct XcaBlockOptions {
  XcaBlockOptions(std::int64_t dim, std::int64_t heads)
      : attention_(dim, heads), mlp_(dim, 4 * dim) {}

  TORCH_ARG(CrossCovarianceOptions, attention);
  TORCH_ARG(MlpOptions, mlp);
  TORCH_ARG(double, norm_eps) = 1e-6;
  // The value at which the layer scales begin.
  TORCH_ARG(double, layer_scale) = 1;
  TORCH_ARG(double, drop_path) = 0;

 public:
  std::int64_t dim() const { return attention_.dim(); }

  // After the attention's projection and in the mlp; attention().dropout() is
  // apart.
  XcaBlockOptions& dropout(double rate) {
    attention_.projection_dropout(rate);
    mlp_.dropout(rate);
    return *this;
  }

  NormOptions norm_options() const { return NormOptions(dim()).eps(norm_eps_); }
};

class XcaBlockImpl : public torch::nn::Cloneable<XcaBlockImpl> {
 public:
  explicit XcaBlockImpl(const XcaBlockOptions& options_);

  void reset() override;

  // [B, N, C], the patches of the grid line by line -> [B, N, C].
  torch::Tensor forward(const torch::Tensor& x, const Grid& grid);

  XcaBlockOptions options;
  Norm norm1{nullptr};
  CrossCovariance attention{nullptr};
  LayerScale layer_scale1{nullptr};
  Norm norm3{nullptr};
  LocalInteraction local{nullptr};
  LayerScale layer_scale3{nullptr};
  Norm norm2{nullptr};
  Mlp mlp{nullptr};
  LayerScale layer_scale2{nullptr};
  DropPath drop_path{nullptr};
};

TORCH_MODULE(XcaBlock);

// Width, heads, activation and rates are those of the other block; nothing of
// it is dropped as a path.
class ClassBlockImpl : public torch::nn::Cloneable<ClassBlockImpl> {
 public:
  ClassBlockImpl(const XcaBlockOptions& options_, bool tokens_norm);

  void reset() override;

  // [B, N, C] -> [B, N, C].
  torch::Tensor forward(const torch::Tensor& x);

  XcaBlockOptions options;
  Norm norm1{nullptr};
  ClassAttention attention{nullptr};
  LayerScale layer_scale1{nullptr};
  Norm norm2{nullptr};
  Mlp mlp{nullptr};
  LayerScale layer_scale2{nullptr};

 private:
  bool tokens_norm_;
};

TORCH_MODULE(ClassBlock);

}  // namespace polyattn::nn
