#include "polyattn/nn/cross_attention.h"

#include <torch/nn/init.h>

#include "nn/attention_checks.h"
#include "nn/gains.h"
#include "nn/split_rows.h"

namespace polyattn::nn {

CrossAttentionImpl::CrossAttentionImpl(const CrossAttentionOptions& options_)
    : options(options_) {
  check_joint_options("CrossAttention", options);
  CrossAttentionImpl::reset();
}

void CrossAttentionImpl::reset() {
  const std::int64_t dim = options.dim();
  in_proj_weight =
      register_parameter("in_proj_weight", torch::empty({3 * dim, dim}));
  torch::nn::init::xavier_uniform_(in_proj_weight);
  in_proj_bias = register_parameter("in_proj_bias", torch::zeros({3 * dim}));
  out_proj = register_module("out_proj", torch::nn::Linear(dim, dim));
  torch::nn::init::zeros_(out_proj->bias);
}

void CrossAttentionImpl::check_rows(const char* name,
                                    const torch::Tensor& rows) const {
  TORCH_CHECK(rows.dim() == 3 && rows.size(2) == options.dim(),
              "[CrossAttention] ", name, " of size ", rows.sizes(),
              " is not [B, N, ", options.dim(), "]");
}

torch::Tensor CrossAttentionImpl::forward(const torch::Tensor& x,
                                          const torch::Tensor& source) {
  check_rows("x", x);
  check_rows("source", source);
  TORCH_CHECK(x.size(0) == source.size(0), "[CrossAttention] batch of x ",
              x.size(0), " != batch of source ", source.size(0));
  const std::int64_t dim = options.dim(), h = options.heads();
  const auto by_head = [&](const torch::Tensor& rows) {
    return rows.unflatten(-1, {h, dim / h}).transpose(1, 2);
  };
  const auto weight = in_proj_weight.split_with_sizes({dim, 2 * dim});
  const auto bias = in_proj_bias.split_with_sizes({dim, 2 * dim});
  const auto parts =
      split_rows(torch::linear(source, weight[1], bias[1]), {dim, dim});
  Heads heads{by_head(torch::linear(x, weight[0], bias[0])), by_head(parts[0]),
              by_head(parts[1])};
  const torch::Tensor o = watched_attention(
      heads, polyattn::AttentionOptions()
                 .activation(options.activation())
                 .dropout(is_training() ? options.dropout() : 0));
  return torch::dropout(out_proj->forward(o.transpose(1, 2).flatten(2)),
                        options.projection_dropout(), is_training());
}

std::vector<double> CrossAttentionImpl::apply_gains(std::vector<double> gains) {
  const std::vector<double> half = shared_part(gains, gains.size());
  const std::int64_t d = options.dim() / options.heads();
  for (const torch::Tensor& rows : {in_proj_weight, in_proj_bias}) {
    scale_heads(rows, 0, d, half);
    scale_heads(rows, options.dim(), d, half);
  }
  return gains;
}

}  // namespace polyattn::nn
