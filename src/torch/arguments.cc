// From the arguments of the op to a Call. Every check of what a user hands in
// is here; messages begin with [attention] and hold both values.
#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "torch/call.h"

namespace polyattn {
namespace {

using Sizes = std::vector<std::int64_t>;

void check_tensor(const char* name, const at::Tensor& t, const at::Tensor& q) {
  TORCH_CHECK(t.defined(), "[attention] ", name, " is an undefined tensor");
  TORCH_CHECK(t.layout() == at::kStrided, "[attention] ", name, " has layout ",
              t.layout(), ", not strided");
  TORCH_CHECK(at::isFloatingType(t.scalar_type()), "[attention] ", name,
              " has type ", t.scalar_type(), ", which is not floating point");
  TORCH_CHECK(t.dim() >= 2, "[attention] ", name, " has ", t.dim(),
              " dimensions, fewer than 2");
  TORCH_CHECK(t.scalar_type() == q.scalar_type(), "[attention] ", name,
              " has type ", t.scalar_type(), " != ", q.scalar_type(),
              " of query");
  TORCH_CHECK(t.device() == q.device(), "[attention] ", name, " is on ",
              t.device(), ", query on ", q.device());
}

bool is_bool(const at::Tensor& t) { return t.scalar_type() == at::kBool; }

// A mask or bias, which must broadcast to `full`: [batch.., H, N, M].
void check_extra(const char* name, const at::Tensor& t, const at::Tensor& q,
                 const Sizes& full) {
  TORCH_CHECK(t.layout() == at::kStrided, "[attention] ", name, " has layout ",
              t.layout(), ", not strided");
  TORCH_CHECK(t.device() == q.device(), "[attention] ", name, " is on ",
              t.device(), ", query on ", q.device());
  TORCH_CHECK(at::is_expandable_to(t.sizes(), full), "[attention] ", name,
              " of size ", t.sizes(), " does not broadcast to ",
              at::IntArrayRef(full));
}

// Heads of a tensor of rows; one without a dimension for them.
std::int64_t count_heads(const at::Tensor& t) {
  return t.dim() >= 3 ? t.size(-3) : 1;
}

// The dimensions before the heads.
at::IntArrayRef batch_of(const at::Tensor& t) {
  return t.sizes().slice(
      0, static_cast<std::size_t>(std::max<std::int64_t>(t.dim() - 3, 0)));
}

std::int64_t product(at::IntArrayRef sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return count;
}

Sizes broadcast_batch(at::IntArrayRef a, at::IntArrayRef b, const char* name) {
  const std::size_t n = std::max(a.size(), b.size());
  Sizes result(n, 1);
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    TORCH_CHECK(x == y || x == 1 || y == 1, "[attention] batch ", b, " of ",
                name, " does not broadcast with ", a, " of query");
    result[n - 1 - i] = x == 1 ? y : x;
  }
  return result;
}

// [batch..., heads, rows, width] of t as [B, heads, rows, width].
at::Tensor four_dimensional(const at::Tensor& t, at::IntArrayRef batch,
                            std::int64_t heads) {
  Sizes full(batch.begin(), batch.end());
  full.insert(full.end(), {heads, t.size(-2), t.size(-1)});
  return t.expand(full).reshape(
      {product(batch), heads, t.size(-2), t.size(-1)});
}

// A mask or bias that broadcasts to `full` as the kernels take it, with one
// batch dimension: the first ones that are shared are left out, because example
// b uses entry b mod size[0].
at::Tensor by_example(at::Tensor t, const Sizes& full) {
  const auto batch = static_cast<std::int64_t>(full.size()) - 3;
  while (t.dim() < batch + 3) t = t.unsqueeze(0);
  if (batch == 0) return t.unsqueeze(0);
  if (batch == 1) return t;
  Sizes own = t.sizes().vec();
  std::int64_t first = 0, examples = 1;
  while (first < batch && t.size(first) == 1) ++first;
  for (std::int64_t i = first; i < batch; ++i) {
    const auto at = static_cast<std::size_t>(i);
    examples *= own[at] = full[at];
  }
  return t.expand(own).reshape({examples, t.size(-3), t.size(-2), t.size(-1)});
}

// Libraries that know softmax alone mask with large negative numbers, of which
// a power is huge. From the first on they mean a key that is not seen; from the
// second on they may.
constexpr double kMasking = -1e4;
constexpr double kSuspicious = -100;

// A bias for what is not softmax, with -inf for numbers that mean masking.
// Other devices than the CPU would have to be waited for, and what a compiler
// or a transform looks at has no numbers: there it is done without a word.
at::Tensor without_finite_masking(const char* name, const at::Tensor& bias,
                                  const Activation& activation) {
  if (activation.kind == ActivationKind::kSoftmax) return bias;
  const double inf = std::numeric_limits<double>::infinity();
  const at::Tensor seen = bias.detach();
  const bool watched =
      bias.key_set().has(c10::DispatchKey::Python) ||
      bias.key_set().has(c10::DispatchKey::FuncTorchBatched) ||
      bias.key_set().has(c10::DispatchKey::FuncTorchGradWrapper);
  if (!bias.is_cpu() || watched)
    return bias.masked_fill(seen.le(kMasking), -inf);
  if (bias.numel() == 0) return bias;
  const auto least =
      seen.masked_fill(seen.eq(-inf), 0).amin().to(at::kDouble).item<double>();
  if (!(least <= kSuspicious)) return bias;
  if (least > kMasking) {
    TORCH_WARN_ONCE("[attention] ", name, " has values down to ", least,
                    ", which ", activation.to_string(),
                    " takes for scores: a key that must not be seen needs a "
                    "bool mask or -inf");
    return bias;
  }
  TORCH_WARN_ONCE("[attention] ", name, " has values down to ", least,
                  ": those at or below -1e4 are taken for keys that are not "
                  "seen, as -inf is, because ",
                  activation.to_string(),
                  " of such scores is not small; a bool mask or -inf says it");
  return bias.masked_fill(seen.le(kMasking), -inf);
}

// Query heads, after checking those of k and v against them.
std::int64_t common_heads(const at::Tensor& q, const at::Tensor& k,
                          const at::Tensor& v, bool gqa) {
  const std::int64_t h = count_heads(q), g = count_heads(k);
  if (gqa) {
    TORCH_CHECK(count_heads(v) == g, "[attention] value heads ", count_heads(v),
                " != key heads ", g);
    TORCH_CHECK(g == 0 ? h == 0 : h % g == 0, "[attention] query heads ", h,
                " is not a multiple of key heads ", g);
    return h;
  }
  std::int64_t heads = h;
  const auto widen = [&](const char* name, std::int64_t other) {
    TORCH_CHECK(other == heads || other == 1 || heads == 1, "[attention] ",
                name, " heads ", other, " != query heads ", h,
                "; grouped heads need enable_gqa");
    if (heads == 1) heads = other;
  };
  widen("key", g);
  widen("value", count_heads(v));
  return heads;
}

void check_coefficients(const Call& call) {
  const at::Tensor& c = call.coefficients;
  const Activation& activation = call.config.activation;
  TORCH_CHECK(activation.kind == ActivationKind::kPolynomial,
              "[attention] coefficients are for polynomials, not for ",
              activation.to_string());
  TORCH_CHECK(at::isFloatingType(c.scalar_type()),
              "[attention] coefficients have type ", c.scalar_type(),
              ", which is not floating point");
  TORCH_CHECK(c.device() == call.q.device(), "[attention] coefficients are on ",
              c.device(), ", query on ", call.q.device());
  TORCH_CHECK(c.dim() == 1 || c.dim() == 2, "[attention] coefficients of size ",
              c.sizes(), " are neither [P + 1] nor [H, P + 1]");
  TORCH_CHECK(c.dim() == 1 || c.size(0) == call.q.size(1),
              "[attention] coefficients for ", c.size(0), " heads, query has ",
              call.q.size(1));
  TORCH_CHECK(c.size(-1) >= 1 && c.size(-1) <= kMaxDegree + 1, "[attention] ",
              c.size(-1), " coefficients, not 1 to ", kMaxDegree + 1);
}

void check_numbers(const Call& call) {
  TORCH_CHECK(std::isfinite(*call.config.scale), "[attention] scale ",
              *call.config.scale, " is not finite");
  TORCH_CHECK(call.dropout >= 0 && call.dropout < 1, "[attention] dropout_p ",
              call.dropout, " is not in [0, 1)");
}

// Limits that no row can meet are none.
void set_window(const Window& window, Call& call) {
  const auto limit = [&](const char* side, std::int64_t keys) {
    TORCH_CHECK(keys >= -1, "[attention] window_size ", side, " ", keys,
                " < -1 (no limit)");
    return keys >= std::max(call.q.size(2), call.k.size(2)) ? -1 : keys;
  };
  call.config.window = {limit("left", window.left),
                        limit("right", window.right)};
}

// What goes together with decay.
void check_decay(const Call& call) {
  const AttentionConfig& config = call.config;
  const bool polynomial = config.activation.kind == ActivationKind::kPolynomial;
  TORCH_CHECK(polynomial, "[attention] log_decay is for polynomials, and ",
              config.activation.to_string(), " is none");
  TORCH_CHECK(config.causal != Causal::kNone,
              "[attention] log_decay without causality");
  TORCH_CHECK(!call.bias.defined(), "[attention] log_decay together with a ",
              "bias or a mask of numbers");
  TORCH_CHECK(!call.mask.defined() || call.mask.size(2) == 1,
              "[attention] log_decay together with a mask of size ",
              call.mask.sizes(), ", which may differ from row to row");
  TORCH_CHECK(call.dropout == 0, "[attention] log_decay together with ",
              "dropout_p ", call.dropout);
  TORCH_CHECK(config.window == Window{}, "[attention] log_decay together with ",
              "window_size ", config.window.left, ", ", config.window.right);
  TORCH_CHECK(config.path != Path::kDense,
              "[attention] log_decay has no dense path: path is 'dense'");
}

void set_decay(const at::Tensor& decay, Call& call) {
  TORCH_CHECK(at::isFloatingType(decay.scalar_type()),
              "[attention] log_decay has type ", decay.scalar_type(),
              ", which is not floating point");
  Sizes full = call.leading;
  if (!full.empty()) full.pop_back();
  const std::size_t batch = full.size();
  full.insert(full.end(), {call.k.size(1), call.k.size(2)});
  check_extra("log_decay", decay, call.q, full);
  at::Tensor t = decay;
  while (t.dim() < static_cast<std::int64_t>(full.size())) t = t.unsqueeze(0);
  const std::int64_t heads = t.size(-2), rows = t.size(-1);
  std::int64_t examples = 1;
  if (t.numel() != heads * rows) {  // else they are shared by all examples
    Sizes own(full.begin(), full.end() - 2);
    examples = product(own);
    own.insert(own.end(), {heads, rows});
    t = t.expand(own);
  }
  TORCH_CHECK(batch == 0 || t.dim() >= 2, "[attention] log_decay is a number");
  call.log_decay = t.reshape({examples, heads, rows, 1});
  check_decay(call);
}

void set_tensors(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                 bool gqa, Call& call) {
  check_tensor("query", q, q);
  check_tensor("key", k, q);
  check_tensor("value", v, q);
  TORCH_CHECK(k.size(-1) == q.size(-1), "[attention] key width ", k.size(-1),
              " != query width ", q.size(-1));
  TORCH_CHECK(v.size(-2) == k.size(-2), "[attention] value rows ", v.size(-2),
              " != key rows ", k.size(-2));
  const std::int64_t heads = common_heads(q, k, v, gqa);
  Sizes batch = broadcast_batch(batch_of(q), batch_of(k), "key");
  batch = broadcast_batch(batch, batch_of(v), "value");
  call.q = four_dimensional(q, batch, heads);
  call.k = four_dimensional(k, batch, gqa ? count_heads(k) : heads);
  call.v = four_dimensional(v, batch, gqa ? count_heads(v) : heads);
  call.leading = batch;
  const bool has_heads = std::max({q.dim(), k.dim(), v.dim()}) >= 3;
  if (has_heads) call.leading.push_back(heads);
}

void set_mask(const at::Tensor& mask, const Sizes& full, Call& call) {
  const bool added = at::isFloatingType(mask.scalar_type());
  TORCH_CHECK(is_bool(mask) || added, "[attention] attn_mask has type ",
              mask.scalar_type(), ", neither bool nor floating point");
  check_extra("attn_mask", mask, call.q, full);
  if (added) {
    call.bias =
        without_finite_masking("attn_mask", mask, call.config.activation);
  } else {
    call.mask = by_example(mask, full);
  }
}

// Behind the mask, to which it is added if that is one of numbers.
void add_bias(const at::Tensor& bias, const Sizes& full, Call& call) {
  TORCH_CHECK(!is_bool(bias),
              "[attention] bias has type Bool: a bool mask is attn_mask");
  TORCH_CHECK(at::isFloatingType(bias.scalar_type()),
              "[attention] bias has type ", bias.scalar_type(),
              ", which is not floating point");
  check_extra("bias", bias, call.q, full);
  const at::Tensor own =
      without_finite_masking("bias", bias, call.config.activation);
  call.bias = call.bias.defined() ? call.bias + own : own;
}

void set_extras(const AttentionOptions& options, Call& call) {
  Sizes full = call.leading;
  if (full.empty()) full.push_back(1);
  full.insert(full.end(), {call.q.size(2), call.k.size(2)});
  const auto given = [](const c10::optional<at::Tensor>& t) {
    return t && t->defined();
  };
  if (given(options.mask())) set_mask(*options.mask(), full, call);
  if (given(options.bias())) add_bias(*options.bias(), full, call);
  if (call.bias.defined()) call.bias = by_example(call.bias, full);
}

Causal causal_of(bool on, c10::string_view alignment) {
  TORCH_CHECK(alignment == "upper_left" || alignment == "lower_right",
              "[attention] causal_alignment '", alignment,
              "' is neither 'upper_left' nor 'lower_right'");
  if (!on) return Causal::kNone;
  return alignment == "upper_left" ? Causal::kFirst : Causal::kLast;
}

Path path_of(c10::string_view name) {
  TORCH_CHECK(name == "auto" || name == "dense" || name == "linear",
              "[attention] path '", name,
              "' is none of 'auto', 'dense' and 'linear'");
  if (name == "auto") return Path::kAuto;
  return name == "dense" ? Path::kDense : Path::kLinear;
}

}  // namespace

AttentionOptions options_of(
    const c10::optional<at::Tensor>& attn_mask, double dropout_p,
    bool is_causal, c10::optional<double> scale, bool enable_gqa,
    c10::string_view activation, const c10::optional<at::Tensor>& coefficients,
    c10::string_view causal_alignment, c10::string_view path,
    const c10::optional<at::Tensor>& bias, at::IntArrayRef window_size,
    const c10::optional<at::Tensor>& log_decay) {
  return AttentionOptions()
      .activation({activation.data(), activation.size()})
      .mask(attn_mask)
      .dropout(dropout_p)
      .causal(causal_of(is_causal, causal_alignment))
      .scale(scale)
      .gqa(enable_gqa)
      .coefficients(coefficients)
      .path(path_of(path))
      .bias(bias)
      .window(window_of(window_size))
      .log_decay(log_decay);
}

Window window_of(at::IntArrayRef window_size) {
  TORCH_CHECK(window_size.size() == 2, "[attention] window_size ", window_size,
              " has ", window_size.size(),
              " numbers, not 2: keys before a "
              "row's own position, and behind it");
  return {window_size[0], window_size[1]};
}

Activation parse_activation(c10::string_view formula) {
  try {
    return Activation::parse({formula.data(), formula.size()});
  } catch (const FormulaError& error) {
    TORCH_CHECK(false, "[attention] bad activation: ", error.what());
  }
}

DType compute_type(const at::Tensor& t) {
  return t.scalar_type() == at::kDouble ? DType::kF64 : DType::kF32;
}

Call make_call(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
               const AttentionOptions& options) {
  Call call;
  call.config.activation = parse_activation(options.activation());
  set_tensors(q, k, v, options.gqa(), call);
  const double width = std::max<double>(static_cast<double>(q.size(-1)), 1);
  call.config.scale = options.scale().value_or(1 / std::sqrt(width));
  call.config.causal = options.causal();
  call.config.compute = compute_type(q);
  call.config.path = options.path();
  call.dropout = options.dropout();
  check_numbers(call);
  set_window(options.window(), call);
  set_extras(options, call);
  if (options.coefficients() && options.coefficients()->defined()) {
    call.coefficients = *options.coefficients();
    check_coefficients(call);
  }
  if (options.log_decay() && options.log_decay()->defined())
    set_decay(*options.log_decay(), call);
  return call;
}

}  // namespace polyattn
