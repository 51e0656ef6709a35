// A transformer block, normalised before each branch:
//
//   x = x + drop_path(layer_scale1(attention(norm1(x))))
//   x = x + drop_path(layer_scale2(mlp(norm2(x))))
#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "polyattn/nn/attention.h"
#include "polyattn/nn/mlp.h"
#include "polyattn/nn/norm.h"
#include "polyattn/nn/nystrom_attention.h"
#include "polyattn/nn/residual.h"

namespace polyattn::nn {

struct BlockOptions {
  BlockOptions(std::int64_t dim, std::int64_t heads)
      : attention_(dim, heads), mlp_(dim, 4 * dim) {}

  TORCH_ARG(AttentionOptions, attention);
  // Attention by way of landmarks in place of all pairs. Of attention() it has
  // width, heads, activation and dropout; other parts are refused.
  TORCH_ARG(std::optional<NystromOptions>, nystrom) = std::nullopt;
  TORCH_ARG(MlpOptions, mlp);
  // layer or rms (polyattn/nn/norm.h).
  TORCH_ARG(std::string, norm) = "layer";
  TORCH_ARG(double, norm_eps) = 1e-5;
  // The value at which the layer scales begin. Default: none.
  TORCH_ARG(std::optional<double>, layer_scale) = std::nullopt;
  TORCH_ARG(double, drop_path) = 0;

 public:
  std::int64_t dim() const { return attention_.dim(); }

  // After the attention's projection and in the mlp; attention().dropout() is
  // apart.
  BlockOptions& dropout(double rate) {
    attention_.projection_dropout(rate);
    mlp_.dropout(rate);
    return *this;
  }

  NormOptions norm_options() const {
    return NormOptions(dim()).kind(norm_).eps(norm_eps_);
  }
};

class BlockImpl : public torch::nn::Cloneable<BlockImpl> {
 public:
  explicit BlockImpl(const BlockOptions& options_);

  void reset() override;

  // As the forward functions of AttentionImpl: [B, N, C] -> [B, N, C]. With
  // landmarks there is no cache.
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& mask = {});
  torch::Tensor forward(const torch::Tensor& x, KvCache& cache);
  torch::Tensor forward(const torch::Tensor& x, DecodeCache& cache);

  BlockOptions options;
  Norm norm1{nullptr};
  Attention attention{nullptr};
  NystromAttention nystrom{nullptr};  // or this, as "attention"
  LayerScale layer_scale1{nullptr};
  Norm norm2{nullptr};
  Mlp mlp{nullptr};
  LayerScale layer_scale2{nullptr};
  DropPath drop_path{nullptr};

 private:
  Attention& attention_with_cache();
  torch::Tensor finish(const torch::Tensor& x, const torch::Tensor& attended);
};

TORCH_MODULE(Block);

}  // namespace polyattn::nn
