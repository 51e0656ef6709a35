#include "polyattn/nn/attention_base.h"

#include <utility>

namespace polyattn::nn {
namespace {

// [..., H] -> [B, H].
AttentionNorms by_example(AttentionNorms norms) {
  for (at::Tensor* values : {&norms.weight, &norms.jacobian,
                             &norms.max_abs_score, &norms.non_finite}) {
    if (values->dim() > 2) *values = values->flatten(0, -2);
  }
  return norms;
}

}  // namespace

void AttentionBase::watch_norms(bool on) {
  watching_ = on;
  norms_.reset();
}

void AttentionBase::watch_other(const std::string& formula) {
  if (!formula.empty()) Activation::parse(formula);
  other_ = formula;
  other_norms_.reset();
}

void AttentionBase::watch_weights(bool on) {
  watching_weights_ = on;
  weights_ = torch::Tensor();
}

torch::Tensor AttentionBase::compute(
    const Heads& heads, const polyattn::AttentionOptions& call) const {
  return other_op_ ? other_op_(heads.q, heads.k, heads.v, call)
                   : polyattn::attention(heads.q, heads.k, heads.v, call);
}

AttentionWithNorms AttentionBase::compute_with_norms(
    const Heads& heads, const polyattn::AttentionOptions& call) const {
  return polyattn::attention_with_norms(heads.q, heads.k, heads.v, call);
}

void AttentionBase::look_closer(const Heads& heads,
                                const polyattn::AttentionOptions& call) {
  if (watching_weights_) {
    // A times the identity, which torch makes in f32 and f64 alone.
    auto sizes = heads.k.sizes().vec();
    const std::int64_t keys = sizes[sizes.size() - 2];
    sizes.back() = keys;
    const auto one = torch::eye(keys).to(heads.v.options());
    weights_ = compute({heads.q, heads.k, one.expand(sizes)},
                       polyattn::AttentionOptions(call).dropout(0));
  }
  if (!other_.empty()) {
    auto other = polyattn::AttentionOptions(call).activation(other_).dropout(0);
    other.coefficients(c10::nullopt);
    if (Activation::parse(other_).kind != ActivationKind::kPolynomial)
      other.log_decay(c10::nullopt);
    other_norms_ = by_example(
        compute_with_norms({heads.q, heads.k, heads.v.narrow(-1, 0, 1)}, other)
            .norms);
  }
}

torch::Tensor AttentionBase::watched_attention(
    Heads& heads, const polyattn::AttentionOptions& call) {
  if (before_weights_) heads.q = before_weights_(heads.q, heads.k, call);
  look_closer(heads, call);
  if (watching_) {
    auto result = compute_with_norms(heads, call);
    norms_ = by_example(std::move(result.norms));
    keys_ = heads.k.size(-2);
    return result.output;
  }
  return compute(heads, call);
}

std::vector<AttentionBase*> attention_layers(torch::nn::Module& module) {
  if (auto* self = module.as<AttentionBase>()) return {self};
  std::vector<AttentionBase*> layers;
  for (const auto& child : module.children()) {
    const auto inner = attention_layers(*child);
    layers.insert(layers.end(), inner.begin(), inner.end());
  }
  return layers;
}

}  // namespace polyattn::nn
