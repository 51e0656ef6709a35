#include "nn/attention_checks.h"

#include <cmath>
#include <utility>

#include "nn/choice.h"

namespace polyattn::nn {
namespace {

void check_sizes(const AttentionOptions& o) {
  TORCH_CHECK(o.dim() > 0, "[Attention] dim ", o.dim(), " < 1");
  TORCH_CHECK(o.heads() > 0, "[Attention] heads ", o.heads(), " < 1");
  const std::int64_t kv_heads = o.kv_heads().value_or(o.heads());
  TORCH_CHECK(kv_heads > 0, "[Attention] kv_heads ", kv_heads, " < 1");
  TORCH_CHECK(o.heads() % kv_heads == 0, "[Attention] heads ", o.heads(),
              " is not a multiple of kv_heads ", kv_heads);
  if (o.head_dim()) {
    TORCH_CHECK(*o.head_dim() > 0, "[Attention] head_dim ", *o.head_dim(),
                " < 1");
  } else {
    TORCH_CHECK(o.dim() % o.heads() == 0, "[Attention] dim ", o.dim(),
                " is not a multiple of heads ", o.heads(),
                "; give head_dim then");
  }
}

void check_short_conv(const AttentionOptions& o) {
  TORCH_CHECK(o.short_conv() >= 0, "[Attention] short_conv ", o.short_conv(),
              " < 0");
  if (!o.grid() || o.short_conv() == 0) return;
  TORCH_CHECK(o.short_conv() == 3, "[Attention] short_conv ", o.short_conv(),
              " is neither 0 nor 3, the side of the window on a grid");
  TORCH_CHECK(!o.causal(), "[Attention] a short_conv on a grid is not causal");
}

void check_norm_clamp(const AttentionOptions& o) {
  check_choice("Attention", "norm_clamp", o.norm_clamp(),
               {"none", "rescale", "penalty"});
  TORCH_CHECK(o.norm_factor() > 0 && std::isfinite(o.norm_factor()),
              "[Attention] norm_factor ", o.norm_factor(),
              " is no finite number above 0");
  TORCH_CHECK(o.norm_clamp() == "none" || !o.causal(),
              "[Attention] norm_clamp ", o.norm_clamp(),
              " is not causal: the norm of the matrix holds all rows");
}

void check_window(const AttentionOptions& o) {
  TORCH_CHECK(o.window() >= 0, "[Attention] window ", o.window(), " < 0");
  if (o.window() == 0) return;
  TORCH_CHECK(o.norm_clamp() == "none", "[Attention] norm_clamp ",
              o.norm_clamp(), " with window ", o.window(),
              ": it holds one matrix at the norm of softmax over all rows");
}

void check_decay(const AttentionOptions& o, const Activation& activation) {
  check_choice("Attention", "decay", o.decay(), {"none", "head", "gate"});
  if (o.decay() == "none") return;
  TORCH_CHECK(o.causal(), "[Attention] decay ", o.decay(),
              " needs causal(true)");
  TORCH_CHECK(activation.kind == ActivationKind::kPolynomial,
              "[Attention] decay is for polynomials, not for ", o.activation());
  TORCH_CHECK(!o.center_values(), "[Attention] decay ", o.decay(),
              " together with center_values");
  TORCH_CHECK(o.dropout() == 0, "[Attention] decay ", o.decay(),
              " together with dropout ", o.dropout(),
              " of the attention weights");
}

}  // namespace

Activation check_formula(const char* op, const std::string& formula) {
  try {
    return Activation::parse(formula);
  } catch (const FormulaError& error) {
    TORCH_CHECK(false, '[', op, "] bad activation: ", error.what());
  }
}

void check_attention_options(const AttentionOptions& options) {
  check_sizes(options);
  check_short_conv(options);
  check_norm_clamp(options);
  const Activation activation =
      check_formula("Attention", options.activation());
  check_window(options);
  check_choice("Attention", "qk_norm", options.qk_norm(),
               {"none", "layer", "rms"});
  check_choice("Attention", "learned_coefficients",
               options.learned_coefficients(), {"none", "shared", "head"});
  check_choice("Attention", "output_norm", options.output_norm(),
               {"none", "rms"});
  check_rate("Attention", "dropout", options.dropout());
  check_rate("Attention", "projection_dropout", options.projection_dropout());
  TORCH_CHECK(options.learned_coefficients() == "none" ||
                  activation.kind == ActivationKind::kPolynomial,
              "[Attention] learned_coefficients are for polynomials, not for ",
              options.activation());
  check_decay(options, activation);
}

NystromAttentionOptions nystrom_options_of(const AttentionOptions& o,
                                           const NystromOptions& nystrom) {
  check_attention_options(o);
  const std::int64_t heads = o.heads();
  const std::pair<const char*, bool> parts[] = {
      {"kv_heads", o.kv_heads().value_or(heads) != heads},
      {"head_dim", o.head_dim().value_or(o.dim() / heads) != o.dim() / heads},
      {"bias(false)", !o.bias()},
      {"causal", o.causal()},
      {"rotary", o.rotary().has_value()},
      {"qk_norm", o.qk_norm() != "none"},
      {"learned_scale", o.learned_scale()},
      {"learned_coefficients", o.learned_coefficients() != "none"},
      {"output_norm", o.output_norm() != "none"},
      {"output_gate", o.output_gate()},
      {"center_values", o.center_values()},
      {"short_conv", o.short_conv() > 0},
      {"norm_clamp", o.norm_clamp() != "none"},
      {"window", o.window() > 0}};
  for (const auto& [name, asked] : parts) {
    TORCH_CHECK(!asked, "[NystromAttention] ", name,
                " is not for attention by way of landmarks");
  }
  return NystromAttentionOptions(o.dim(), heads)
      .activation(o.activation())
      .dropout(o.dropout())
      .projection_dropout(o.projection_dropout())
      .nystrom(nystrom);
}

}  // namespace polyattn::nn
