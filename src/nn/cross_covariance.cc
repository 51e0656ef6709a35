#include "polyattn/nn/cross_covariance.h"

#include <torch/nn/init.h>
#include <torch/utils.h>

#include "nn/attention_checks.h"
#include "nn/gains.h"

namespace polyattn::nn {
namespace {

constexpr double kLeastNorm = 1e-12;

torch::Tensor of_unit_norm(const torch::Tensor& x) {
  return x / x.norm(2, -1, /*keepdim=*/true).clamp_min(kLeastNorm);
}

}  // namespace

CrossCovarianceImpl::CrossCovarianceImpl(const CrossCovarianceOptions& options_)
    : options(options_) {
  check_joint_options("CrossCovariance", options);
  CrossCovarianceImpl::reset();
}

void CrossCovarianceImpl::reset() {
  const std::int64_t dim = options.dim();
  in_proj_weight =
      register_parameter("in_proj_weight", torch::empty({3 * dim, dim}));
  torch::nn::init::xavier_uniform_(in_proj_weight);
  in_proj_bias = register_parameter("in_proj_bias", torch::zeros({3 * dim}));
  out_proj = register_module("out_proj", torch::nn::Linear(dim, dim));
  torch::nn::init::zeros_(out_proj->bias);
  temperature =
      register_parameter("temperature", torch::empty({options.heads()}));
  reset_learned();
}

void CrossCovarianceImpl::reset_learned() {
  torch::nn::init::ones_(temperature);
}

// The rows are turned around once, after the projection: from then on a channel
// is a row, which the kernels read.
torch::Tensor CrossCovarianceImpl::forward(const torch::Tensor& x) {
  TORCH_CHECK(x.dim() == 3 && x.size(2) == options.dim(),
              "[CrossCovariance] x of size ", x.sizes(), " is not [B, N, ",
              options.dim(), "]");
  const std::int64_t h = options.heads(), d = options.dim() / h;
  const auto parts = torch::linear(x, in_proj_weight, in_proj_bias)
                         .transpose(1, 2)
                         .contiguous()
                         .view({x.size(0), 3, h, d, x.size(1)})
                         .unbind(1);
  Heads heads{of_unit_norm(parts[0]) * temperature.view({h, 1, 1}),
              of_unit_norm(parts[1]), parts[2]};
  const torch::Tensor o = watched_attention(
      heads, polyattn::AttentionOptions()
                 .activation(options.activation())
                 .dropout(is_training() ? options.dropout() : 0)
                 .scale(1.0));
  return torch::dropout(out_proj->forward(o.flatten(1, 2).transpose(1, 2)),
                        options.projection_dropout(), is_training());
}

std::vector<double> CrossCovarianceImpl::apply_gains(
    std::vector<double> gains) {
  temperature.mul_(gain_column(gains, temperature).flatten());
  return gains;
}

}  // namespace polyattn::nn
