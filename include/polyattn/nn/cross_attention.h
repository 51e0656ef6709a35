// Cross attention: the rows of x ask, those of another sequence answer.
//
//   q = heads of x, k and v = heads of source, scale 1/sqrt(d)
//   y = out_proj(f(q k^T / sqrt(d)) v)
//
// N of a formula is the number of rows of the source. Parameters bear the names
// and shapes of nn::Attention: in_proj_weight [3 C, C], in_proj_bias,
// out_proj.weight, out_proj.bias.
#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "polyattn/nn/attention_base.h"

namespace polyattn::nn {

struct CrossAttentionOptions {
  CrossAttentionOptions(std::int64_t dim, std::int64_t heads)
      : dim_(dim), heads_(heads) {}

  TORCH_ARG(std::int64_t, dim);
  TORCH_ARG(std::int64_t, heads);
  // A formula (polyattn/activation.h).
  TORCH_ARG(std::string, activation) = "softmax";
  // Of the attention weights, in training.
  TORCH_ARG(double, dropout) = 0;
  // Of the output of out_proj, in training.
  TORCH_ARG(double, projection_dropout) = 0;
};

class CrossAttentionImpl : public torch::nn::Cloneable<CrossAttentionImpl>,
                           public AttentionBase {
 public:
  explicit CrossAttentionImpl(const CrossAttentionOptions& options_);

  void reset() override;

  // [B, N, C], [B, M, C] -> [B, N, C].
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& source);

  std::string kind() const override { return "cross"; }
  const std::string& activation() const override {
    return options.activation();
  }
  std::int64_t heads() const override { return options.heads(); }
  std::vector<double> apply_gains(std::vector<double> gains) override;

  CrossAttentionOptions options;
  torch::Tensor in_proj_weight;
  torch::Tensor in_proj_bias;
  torch::nn::Linear out_proj{nullptr};

 private:
  void check_rows(const char* name, const torch::Tensor& rows) const;
};

TORCH_MODULE(CrossAttention);

}  // namespace polyattn::nn
