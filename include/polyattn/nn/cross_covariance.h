// Cross-covariance attention (XCA, of XCiT): channels attend to channels.
//
//   q, k, v = heads of in_proj(x), each [B, H, d, N]
//   q, k <- q / |q|, k / |k|                        by channel, over the N rows
//   y = out_proj(f(temperature_h q k^T) v)
//
// As attention it has d queries and d keys of width N and a scale of 1, so that
// N of a formula is d, the channels of a head: x^3/sqrt(N) divides by sqrt(d).
// Its cost is linear in the number of rows, with softmax too.
//
// Parameters: in_proj_weight [3 C, C] with the rows of q, k and v in this
// order, in_proj_bias [3 C], out_proj.weight [C, C], out_proj.bias [C],
// temperature [H], 1 at first.
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

struct CrossCovarianceOptions {
  CrossCovarianceOptions(std::int64_t dim, std::int64_t heads)
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

class CrossCovarianceImpl : public torch::nn::Cloneable<CrossCovarianceImpl>,
                            public AttentionBase {
 public:
  explicit CrossCovarianceImpl(const CrossCovarianceOptions& options_);

  void reset() override;

  // What no initialisation draws: the temperature.
  void reset_learned();

  // [B, N, C] -> [B, N, C].
  torch::Tensor forward(const torch::Tensor& x);

  std::string kind() const override { return "channel"; }
  const std::string& activation() const override {
    return options.activation();
  }
  std::int64_t heads() const override { return options.heads(); }
  std::vector<double> apply_gains(std::vector<double> gains) override;

  CrossCovarianceOptions options;
  torch::Tensor in_proj_weight;
  torch::Tensor in_proj_bias;
  torch::nn::Linear out_proj{nullptr};
  torch::Tensor temperature;
};

TORCH_MODULE(CrossCovariance);

}  // namespace polyattn::nn
