#include "polyattn/nn/attention.h"

#include <torch/nn/functional/activation.h>
#include <torch/nn/init.h>
#include <torch/utils.h>

#include <cmath>
#include <utility>

#include "nn/attention_checks.h"
#include "nn/center_values.h"
#include "nn/gains.h"
#include "nn/norm_clamp.h"
#include "nn/split_rows.h"

namespace polyattn::nn {
namespace {

constexpr double kHeadNormEps = 1e-6;
// What a gate of decay begins with.
constexpr double kFirstGate = 0.999;

// Of key heads, at first: 1 - 2^-5, 1 - 2^-6, ..., at most 1 - 2^-12.
torch::Tensor first_decay_rates(std::int64_t heads) {
  const double step = heads > 8 ? 7.0 / static_cast<double>(heads - 1) : 1;
  const torch::Tensor exponent =
      5 + step * torch::arange(heads, torch::TensorOptions(torch::kDouble));
  return (-torch::log1p(-torch::exp2(-exponent))).log();
}

// The coefficients of the formula: [P + 1].
torch::Tensor formula_coefficients(const Activation& activation) {
  const auto count = static_cast<std::size_t>(activation.degree) + 1;
  const std::vector<double> values(
      activation.coefficient.begin(),
      activation.coefficient.begin() + static_cast<std::ptrdiff_t>(count));
  return torch::tensor(values, torch::kDouble);
}

// Of the rows of a head, with one weight for all heads.
NormOptions head_norm(std::int64_t head_dim, const std::string& kind) {
  return NormOptions(head_dim).kind(kind).bias(false).eps(kHeadNormEps);
}

// [B, N, heads * D] -> [B, N, heads, D].
torch::Tensor by_head(const torch::Tensor& rows, std::int64_t head_dim) {
  return rows.unflatten(-1, {rows.size(-1) / head_dim, head_dim});
}

}  // namespace

AttentionImpl::AttentionImpl(const AttentionOptions& options_)
    : options(options_) {
  check_attention_options(options);
  AttentionImpl::reset();
}

std::int64_t AttentionImpl::kv_heads() const {
  return options.kv_heads().value_or(options.heads());
}

std::int64_t AttentionImpl::head_dim() const {
  return options.head_dim().value_or(options.dim() / options.heads());
}

void AttentionImpl::reset() {
  register_projections();
  register_learned();
  reset_learned();
  rotary_.reset();
  if (options.rotary()) rotary_.emplace(*options.rotary(), head_dim());
}

void AttentionImpl::register_projections() {
  const std::int64_t width = options.heads() * head_dim();
  const std::int64_t rows = width + 2 * kv_heads() * head_dim();
  in_proj_weight =
      register_parameter("in_proj_weight", torch::empty({rows, options.dim()}));
  torch::nn::init::xavier_uniform_(in_proj_weight);
  out_proj = register_module(
      "out_proj",
      torch::nn::Linear(
          torch::nn::LinearOptions(width, options.dim()).bias(options.bias())));
  if (options.output_gate()) {
    gate_proj = register_module(
        "gate_proj",
        torch::nn::Linear(torch::nn::LinearOptions(options.dim(), width)
                              .bias(options.bias())));
  }
  if (!options.bias()) return;
  in_proj_bias = register_parameter("in_proj_bias", torch::zeros({rows}));
  torch::nn::init::zeros_(out_proj->bias);
  if (gate_proj) torch::nn::init::zeros_(gate_proj->bias);
}

void AttentionImpl::register_learned() {
  if (options.qk_norm() != "none") {
    const auto norm = head_norm(head_dim(), options.qk_norm());
    q_norm = register_module("q_norm", Norm(norm));
    k_norm = register_module("k_norm", Norm(norm));
  }
  if (options.learned_scale()) {
    score_scale =
        register_parameter("score_scale", torch::empty({options.heads()}));
  }
  if (options.learned_coefficients() != "none") {
    const std::int64_t count =
        Activation::parse(options.activation()).degree + 1;
    coefficients = register_parameter(
        "coefficients", options.learned_coefficients() == "head"
                            ? torch::empty({options.heads(), count})
                            : torch::empty({count}));
  }
  if (options.window() > 0 && !slides()) {
    hybrid_gate =
        register_parameter("hybrid_gate", torch::empty({options.heads()}));
  }
  if (options.output_norm() != "none") {
    output_norm = register_module(
        "output_norm", Norm(head_norm(head_dim(), options.output_norm())));
  }
  if (options.decay() == "head") {
    log_decay_rate =
        register_parameter("log_decay_rate", torch::empty({kv_heads()}));
  }
  if (options.decay() == "gate") {
    decay_proj = register_module("decay_proj",
                                 torch::nn::Linear(options.dim(), kv_heads()));
  }
  if (options.short_conv() > 0) {
    const std::int64_t channels =
        options.grid() ? kv_heads() * head_dim() : in_proj_weight.size(0);
    short_conv = register_module(
        "short_conv", ShortConv(ShortConvOptions(channels, options.short_conv())
                                    .grid(options.grid())));
  }
}

void AttentionImpl::reset_learned() {
  const torch::NoGradGuard no_grad;
  if (q_norm) q_norm->reset_parameters();
  if (k_norm) k_norm->reset_parameters();
  if (output_norm) output_norm->reset_parameters();
  if (short_conv) short_conv->reset_parameters();
  if (score_scale.defined()) {
    score_scale.fill_(1 / std::sqrt(static_cast<double>(head_dim())));
  }
  if (log_decay_rate.defined())
    log_decay_rate.copy_(first_decay_rates(kv_heads()));
  if (decay_proj) {  // exp(-softplus(bias)) = 1 / (1 + exp(bias))
    decay_proj->weight.zero_();
    decay_proj->bias.fill_(std::log(1 / kFirstGate - 1));
  }
  if (coefficients.defined()) {
    coefficients.copy_(
        formula_coefficients(Activation::parse(options.activation())));
  }
  // Both parts then learn from the first step on, and with the matched start
  // they are of one size.
  if (hybrid_gate.defined()) hybrid_gate.fill_(1);
}

// One product and a split: the heads are views that the kernels read where they
// lie, and the fused backward writes the gradients of q, k and v side by side.
AttentionImpl::Heads AttentionImpl::project(const torch::Tensor& x,
                                            std::int64_t first,
                                            torch::Tensor* tail) {
  const std::int64_t q_width = options.heads() * head_dim();
  const std::int64_t k_width = kv_heads() * head_dim();
  const std::vector<std::int64_t> widths = {q_width, k_width, k_width};
  torch::Tensor rows = torch::linear(x, in_proj_weight, in_proj_bias);
  if (short_conv && !options.grid()) {
    rows = tail != nullptr ? short_conv->forward(rows, *tail)
                           : short_conv->forward(rows);
  }
  auto parts =
      other_op_ ? rows.split_with_sizes(widths, -1) : split_rows(rows, widths);
  if (short_conv && options.grid()) parts[2] = short_conv->forward(parts[2]);
  return finish({parts[0], parts[1], parts[2]}, first);
}

// From rows [B, N, heads * D]: norms before positions, and the learned scale on
// q, where it is cheapest.
AttentionImpl::Heads AttentionImpl::finish(const Heads& rows,
                                           std::int64_t first) {
  torch::Tensor q = by_head(rows.q, head_dim());
  torch::Tensor k = by_head(rows.k, head_dim());
  if (q_norm) q = q_norm->forward(q);
  if (k_norm) k = k_norm->forward(k);
  q = q.transpose(1, 2);
  k = k.transpose(1, 2);
  if (rotary_) {
    q = rotary_->rotate(q, first);
    k = rotary_->rotate(k, first);
  }
  if (score_scale.defined()) q = q * score_scale.view({-1, 1, 1});
  return {q, k, by_head(rows.v, head_dim()).transpose(1, 2)};
}

// What scores are multiplied by beside the learned scale, which is on q.
double AttentionImpl::score_factor() const {
  return options.learned_scale()
             ? 1
             : 1 / std::sqrt(static_cast<double>(head_dim()));
}

polyattn::AttentionOptions AttentionImpl::call_options(
    const torch::Tensor& mask, Causal causal) const {
  auto call = polyattn::AttentionOptions()
                  .activation(options.activation())
                  .dropout(is_training() ? options.dropout() : 0)
                  .causal(causal)
                  .scale(score_factor())
                  .gqa(kv_heads() != options.heads());
  if (mask.defined()) call.mask(mask);
  return call;
}

torch::Tensor AttentionImpl::log_decay(const torch::Tensor& x) {
  if (log_decay_rate.defined()) return -log_decay_rate.exp().unsqueeze(1);
  if (!decay_proj) return {};
  return -torch::nn::functional::softplus(decay_proj->forward(x))
              .transpose(1, 2);
}

torch::Tensor AttentionImpl::weighted(Heads& heads, const torch::Tensor& mask,
                                      Causal causal,
                                      const torch::Tensor& log_decay) {
  auto call = call_options(mask, causal);
  if (coefficients.defined()) call.coefficients(coefficients);
  if (slides()) call.window(window_of(causal));
  if (log_decay.defined()) call.log_decay(log_decay);
  const torch::Tensor o = watched_attention(heads, call);
  return options.norm_clamp() == "none" ? o : clamped(heads, call, o);
}

// What is watched follows the weights; the Jacobian is that of A for a factor
// that stays as it is.
torch::Tensor AttentionImpl::clamped(const Heads& heads,
                                     const polyattn::AttentionOptions& call,
                                     const torch::Tensor& o) {
  const bool penalty = options.norm_clamp() == "penalty";
  norm_penalty_ = torch::Tensor();
  if (penalty && !is_training()) return o;
  const torch::Tensor excess =
      log_norm_excess(heads.q, heads.k, call, options.norm_factor());
  if (penalty) {
    norm_penalty_ = excess.square().mean();
    return o;
  }
  const torch::Tensor gain = (-excess).exp();
  const torch::Tensor gains = gain.unsqueeze(-1).unsqueeze(-1);
  if (norms_) {
    norms_->weight = norms_->weight * gain.detach();
    norms_->jacobian = norms_->jacobian * gain.detach();
  }
  if (weights_.defined()) weights_ = weights_ * gains;
  return o * gains.to(o.scalar_type());
}

torch::Tensor AttentionImpl::centered(Heads& heads, const torch::Tensor& mask,
                                      Causal causal) {
  const CenteredValues values(
      heads.v, {.mask = mask, .causal = causal, .rows = heads.q.size(2)});
  Heads own = {heads.q, heads.k, values.values()};
  const torch::Tensor o = values.output(weighted(own, mask, causal, {}));
  heads.q = own.q;
  return o;
}

// o [B, H, N, D], of the rows x -> [B, N, C].
torch::Tensor AttentionImpl::project_out(const torch::Tensor& x,
                                         const torch::Tensor& o) {
  torch::Tensor rows = o.transpose(1, 2);
  if (output_norm) rows = output_norm->forward(rows);
  rows = rows.flatten(2);
  if (gate_proj) rows = rows * torch::sigmoid(gate_proj->forward(x));
  return out_proj->forward(rows);
}

torch::Tensor AttentionImpl::attend(const torch::Tensor& x, Heads heads,
                                    const torch::Tensor& mask, Causal causal) {
  // Rows of softmax sum to 1: there is nothing to centre.
  const bool centers = options.center_values() && !slides();
  torch::Tensor o = centers ? centered(heads, mask, causal)
                            : weighted(heads, mask, causal, log_decay(x));
  if (hybrid_gate.defined()) o = with_window(heads, mask, causal, o);
  const torch::Tensor y = project_out(x, o);
  return torch::dropout(y, options.projection_dropout(), is_training());
}

void AttentionImpl::check_rows(const torch::Tensor& x) const {
  TORCH_CHECK(x.dim() == 3 && x.size(2) == options.dim(),
              "[Attention] x of size ", x.sizes(), " is not [B, N, ",
              options.dim(), "]");
}

torch::Tensor AttentionImpl::forward(const torch::Tensor& x,
                                     const torch::Tensor& mask) {
  check_rows(x);
  return attend(x, project(x), mask,
                options.causal() ? Causal::kFirst : Causal::kNone);
}

// Where there are scales or norms the projections stay as they are: norms would
// take out what is put into them.
std::vector<double> AttentionImpl::apply_gains(std::vector<double> gains) {
  if (score_scale.defined()) {
    score_scale.mul_(gain_column(gains, score_scale).flatten());
    return gains;
  }
  if (q_norm) {
    const double part = shared_part(gains, 1).front();
    q_norm->weight.mul_(part);
    k_norm->weight.mul_(part);
    return std::vector<double>(gains.size(), part * part);
  }
  const auto groups = static_cast<std::size_t>(kv_heads());
  const std::vector<double> of_k = shared_part(gains, groups);
  std::vector<double> of_q(gains.size());
  for (std::size_t h = 0; h < gains.size(); ++h) {
    of_q[h] = gains[h] / of_k[h / (gains.size() / groups)];
  }
  for (const torch::Tensor& rows : {in_proj_weight, in_proj_bias}) {
    scale_heads(rows, 0, head_dim(), of_q);
    scale_heads(rows, options.heads() * head_dim(), head_dim(), of_k);
  }
  return gains;
}

}  // namespace polyattn::nn
