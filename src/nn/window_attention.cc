#include "polyattn/nn/window_attention.h"

#include <torch/nn/init.h>
#include <torch/utils.h>

#include <cmath>

#include "nn/attention_checks.h"
#include "nn/choice.h"
#include "nn/gains.h"
#include "nn/split_rows.h"
#include "nn/windows.h"

namespace polyattn::nn {
namespace {

constexpr std::int64_t kBiasHidden = 512;
constexpr double kFirstLogit = 10;
constexpr double kMostLogit = 100;
constexpr double kNormEps = 1e-12;

void check_window_options(const WindowAttentionOptions& o) {
  TORCH_CHECK(o.dim() > 0, "[WindowAttention] dim ", o.dim(), " < 1");
  TORCH_CHECK(o.heads() > 0, "[WindowAttention] heads ", o.heads(), " < 1");
  TORCH_CHECK(o.dim() % o.heads() == 0, "[WindowAttention] dim ", o.dim(),
              " is not a multiple of heads ", o.heads());
  TORCH_CHECK(o.window() > 1, "[WindowAttention] window ", o.window(), " < 2");
  TORCH_CHECK(o.shift() >= 0 && o.shift() < o.window(),
              "[WindowAttention] shift ", o.shift(), " is not in [0, ",
              o.window(), "), the window");
  check_formula("WindowAttention", o.activation());
  check_rate("WindowAttention", "dropout", o.dropout());
  check_rate("WindowAttention", "projection_dropout", o.projection_dropout());
}

// Rows of length one, in f32 at least.
torch::Tensor unit_rows(const torch::Tensor& rows) {
  const auto wide = c10::promoteTypes(torch::kFloat, rows.scalar_type());
  const torch::Tensor x = rows.to(wide);
  return (x / x.norm(2, -1, /*keepdim=*/true).clamp_min(kNormEps))
      .to(rows.scalar_type());
}

}  // namespace

WindowAttentionImpl::WindowAttentionImpl(const WindowAttentionOptions& options_)
    : options(options_) {
  check_window_options(options);
  WindowAttentionImpl::reset();
}

void WindowAttentionImpl::reset() {
  using torch::nn::Linear;
  using torch::nn::LinearOptions;
  const std::int64_t c = options.dim(), offsets = 2 * options.window() - 1;
  in_proj_weight =
      register_parameter("in_proj_weight", torch::empty({3 * c, c}));
  torch::nn::init::xavier_uniform_(in_proj_weight);
  in_proj_bias = register_parameter("in_proj_bias", torch::zeros({3 * c}));
  out_proj = register_module("out_proj", Linear(c, c));
  torch::nn::init::zeros_(out_proj->bias);
  offset_index_ = offset_index(options.window());
  if (!options.cosine()) {
    bias_table = register_parameter(
        "bias_table",
        0.02 * torch::randn({offsets * offsets, options.heads()}));
    return;
  }
  log_offsets_ = log_offsets(options.window());
  logit_scale =
      register_parameter("logit_scale", torch::empty({options.heads(), 1, 1}));
  bias_fc1 = register_module("bias_fc1", Linear(2, kBiasHidden));
  bias_fc2 = register_module(
      "bias_fc2",
      Linear(LinearOptions(kBiasHidden, options.heads()).bias(false)));
  reset_learned();
}

void WindowAttentionImpl::reset_learned() {
  const torch::NoGradGuard no_grad;
  if (logit_scale.defined()) logit_scale.fill_(std::log(kFirstLogit));
}

// [B, W, N, C] -> heads of [B, W, H, N, D].
AttentionBase::Heads WindowAttentionImpl::project(
    const torch::Tensor& windows) {
  const std::int64_t c = options.dim();
  torch::Tensor bias = in_proj_bias;
  if (options.cosine()) {
    const torch::Tensor none = torch::zeros({c}, bias.options());
    bias = torch::cat({bias.narrow(0, 0, c), none, bias.narrow(0, 2 * c, c)});
  }
  const auto parts =
      split_rows(torch::linear(windows, in_proj_weight, bias), {c, c, c});
  const auto by_head = [&](const torch::Tensor& rows) {
    return rows.unflatten(-1, {options.heads(), head_dim()}).transpose(2, 3);
  };
  Heads heads{by_head(parts[0]), by_head(parts[1]), by_head(parts[2])};
  if (!options.cosine()) return heads;
  const torch::Tensor factor =
      logit_scale.clamp_max(std::log(kMostLogit)).exp();
  heads.q = unit_rows(heads.q) * factor.to(heads.q.scalar_type());
  heads.k = unit_rows(heads.k);
  return heads;
}

// [H, N, N]. 16 sigmoid(y) - 8 is 8 tanh(y / 2).
torch::Tensor WindowAttentionImpl::score_bias() {
  torch::Tensor table = bias_table;
  if (options.cosine()) {
    const torch::Tensor y = bias_fc2->forward(torch::relu(
        bias_fc1->forward(log_offsets_.to(bias_fc1->weight.options()))));
    table = 8 * torch::tanh(y / 2);
  }
  const std::int64_t n = options.window() * options.window();
  return table.t()
      .index_select(1, offset_index_.to(table.device()))
      .view({options.heads(), n, n});
}

const torch::Tensor& WindowAttentionImpl::mask_of(const WindowGrid& grid,
                                                  torch::Device device) {
  if (mask_height_ != grid.height || mask_width_ != grid.width) {
    mask_ = shift_mask(grid);
    mask_height_ = grid.height;
    mask_width_ = grid.width;
  }
  if (mask_.defined()) mask_ = mask_.to(device);
  return mask_;
}

WindowGrid WindowAttentionImpl::grid() const {
  return window_grid(mask_height_, mask_width_, options.window(),
                     options.shift());
}

torch::Tensor WindowAttentionImpl::forward(const torch::Tensor& x) {
  TORCH_CHECK(x.dim() == 4 && x.size(3) == options.dim(),
              "[WindowAttention] x of size ", x.sizes(),
              " is not [B, height, width, ", options.dim(), "]");
  TORCH_CHECK(x.size(1) > 0 && x.size(2) > 0, "[WindowAttention] x of size ",
              x.sizes(), " has no tokens");
  const WindowGrid grid =
      window_grid(x.size(1), x.size(2), options.window(), options.shift());
  Heads heads = project(to_windows(x, grid));
  auto call = polyattn::AttentionOptions()
                  .activation(options.activation())
                  .bias(score_bias())
                  .dropout(is_training() ? options.dropout() : 0)
                  .scale(options.cosine()
                             ? 1
                             : 1 / std::sqrt(static_cast<double>(head_dim())));
  const torch::Tensor& mask = mask_of(grid, x.device());
  if (mask.defined()) call.mask(mask);
  const torch::Tensor o = watched_attention(heads, call);
  const torch::Tensor y = out_proj->forward(o.transpose(2, 3).flatten(3));
  return torch::dropout(from_windows(y, grid), options.projection_dropout(),
                        is_training());
}

std::vector<double> WindowAttentionImpl::apply_gains(
    std::vector<double> gains) {
  if (options.cosine()) {
    logit_scale.clamp_max_(std::log(kMostLogit));
    logit_scale.add_(gain_column(gains, logit_scale).log());
    return gains;
  }
  const std::vector<double> part = shared_part(gains, gains.size());
  for (const torch::Tensor& rows : {in_proj_weight, in_proj_bias}) {
    scale_heads(rows, 0, head_dim(), part);
    scale_heads(rows, options.dim(), head_dim(), part);
  }
  return gains;
}

}  // namespace polyattn::nn
