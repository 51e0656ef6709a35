// The public ops: they check the arguments and choose between the kernels of
// the core and the composed definition. And their functions in C++, which go
// through torch's dispatcher, so that autocast and tracing see them.
#include "polyattn/torch/attention.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <torch/library.h>

#include <mutex>
#include <utility>

#include "polyattn/target.h"
#include "torch/call.h"
#include "torch/composed.h"
#include "torch/composed_linear.h"
#include "torch/core_errors.h"
#include "torch/find_op.h"
#include "torch/fused.h"
#include "torch/saved_call.h"
#include "torch/tangents.h"

namespace polyattn {
namespace {

using OptionalTensor = c10::optional<at::Tensor>;

bool wants_gradient(const at::Tensor& t) {
  return t.defined() && at::GradMode::is_enabled() && t.requires_grad();
}

// A gradient that has a tangent itself, as forward over reverse mode wants it,
// is more than the fused backward knows.
bool knows_tangents(const Call& call) {
  const bool gradient = wants_gradient(call.q) || wants_gradient(call.k) ||
                        wants_gradient(call.v) || wants_gradient(call.bias) ||
                        wants_gradient(call.log_decay);
  return !gradient && !split_tangents(call).cotangents[kCoefficients].defined();
}

// What the kernels can do. The rest goes by the composed definition.
bool is_fused(const Call& call) {
  const at::ScalarType type = call.q.scalar_type();
  const bool known = type == at::kFloat || type == at::kDouble ||
                     type == at::kBFloat16 || type == at::kHalf;
  const bool here = call.q.is_cpu() || call.q.is_meta();
  const bool linear = call.config.activation.divisor != Divisor::kSum;
  const bool decays = call.log_decay.defined() && !call.q.is_meta();
  const bool plain_alone =
      call.dropout > 0 || wants_gradient(call.bias) || decays;
  const bool dense = call.dropout == 0 || call.config.path != Path::kLinear;
  return known && here && dense && (!plain_alone || is_plain(call)) &&
         (linear || !wants_gradient(call.coefficients)) &&
         (!has_tangent(call) || knows_tangents(call));
}

// The same with a seed for the weights that are dropped, from torch's default
// generator.
Call with_seed(Call call) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  call.config.dropout = {
      .p = std::exchange(call.dropout, 0),
      .seed = at::check_generator<at::CPUGeneratorImpl>(generator)->random64()};
  return call;
}

// In torch ops. The kernels' device and types have a planner for what is left
// to choose; elsewhere linear time is taken where it is clearly less.
at::Tensor composed(const Call& call) {
  if (call.log_decay.defined()) return composed_attention(call);
  const Path path = call.config.path;
  const bool elsewhere = !call.q.is_cpu() && !call.q.is_meta();
  if (elsewhere) {
    TORCH_WARN_ONCE("[attention] there are no kernels for ",
                    call.q.device().type(),
                    ": attention is computed there by its definition in torch "
                    "ops, exact, but slower than a kernel");
  }
  if (path == Path::kLinear) {
    const std::string reason = why_not_linear(call);
    TORCH_CHECK(reason.empty(), "[attention] no linear path: ", reason);
    return composed_linear(call);
  }
  const bool linear =
      elsewhere && path == Path::kAuto && is_faster_linear(call);
  return linear ? composed_linear(call) : composed_attention(call);
}

at::Tensor with_leading(const at::Tensor& t, const Call& call,
                        at::IntArrayRef rest) {
  std::vector<std::int64_t> sizes = call.leading;
  sizes.insert(sizes.end(), rest.begin(), rest.end());
  return t.reshape(sizes);
}

at::Tensor output_of(const Call& call, const FusedResults& results) {
  return with_leading(results.o, call, {results.o.size(2), results.o.size(3)});
}

Call call_of(const at::Tensor& query, const at::Tensor& key,
             const at::Tensor& value, const OptionalTensor& attn_mask,
             double dropout_p, bool is_causal, c10::optional<double> scale,
             bool enable_gqa, c10::string_view activation,
             const OptionalTensor& coefficients,
             c10::string_view causal_alignment, c10::string_view path,
             const OptionalTensor& bias, at::IntArrayRef window_size,
             const OptionalTensor& log_decay) {
  return make_call(
      query, key, value,
      options_of(attn_mask, dropout_p, is_causal, scale, enable_gqa, activation,
                 coefficients, causal_alignment, path, bias, window_size,
                 log_decay));
}

template <typename... Arguments>
at::Tensor attention_op(Arguments... arguments) {
  const Call call = call_of(arguments...);
  return output_of(call, evaluate(call, false));
}

template <typename... Arguments>
at::Tensor composed_attention_op(Arguments... arguments) {
  const Call call = call_of(arguments...);
  return output_of(call, {composed(call), {}, {}});
}

template <typename... Arguments>
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>
attention_with_norms_op(Arguments... arguments) {
  const Call call = call_of(arguments...);
  const FusedResults results = evaluate(call, true);
  const auto column = [&](std::int64_t i) {
    return with_leading(results.norms.select(2, i), call, {});
  };
  // The square of the Jacobian's norm is a difference with divisor sum, and
  // rounding may leave it below zero where the norm is zero.
  return {output_of(call, results), column(0).sqrt(),
          column(1).clamp_min(0).sqrt(), column(2).clone(),
          column(3).to(at::kLong)};
}

// The signature of both, for the templates above and for the dispatcher.
template <template <typename...> class Apply>
using WithArguments =
    Apply<const at::Tensor&, const at::Tensor&, const at::Tensor&,
          const OptionalTensor&, double, bool, c10::optional<double>, bool,
          c10::string_view, const OptionalTensor&, c10::string_view,
          c10::string_view, const OptionalTensor&, at::IntArrayRef,
          const OptionalTensor&>;

template <typename... Arguments>
struct AttentionOps {
  static constexpr auto* kAttention = attention_op<Arguments...>;
  static constexpr auto* kWithNorms = attention_with_norms_op<Arguments...>;
  static constexpr auto* kComposed = composed_attention_op<Arguments...>;
};

std::string canonical_formula(c10::string_view formula) {
  return parse_activation(formula).to_string();
}

std::vector<double> polynomial_coefficients(c10::string_view formula) {
  const Activation a = parse_activation(formula);
  TORCH_CHECK(a.kind == ActivationKind::kPolynomial, "[attention] ",
              a.to_string(), " is not a polynomial");
  return {a.coefficient.begin(), a.coefficient.begin() + a.degree + 1};
}

std::string active_target() {
  std::string name;
  with_torch_errors([&] { name = target_name(); });
  return name;
}

using Ops = WithArguments<AttentionOps>;

template <typename Function>
auto call_op(const c10::TypedOperatorHandle<Function>& op, const at::Tensor& q,
             const at::Tensor& k, const at::Tensor& v,
             const AttentionOptions& o) {
  const bool is_causal = o.causal() != Causal::kNone;
  return op.call(q, k, v, o.mask(), o.dropout(), is_causal, o.scale(), o.gqa(),
                 o.activation(), o.coefficients(),
                 o.causal() == Causal::kLast ? "lower_right" : "upper_left",
                 name_of(o.path()), o.bias(), window_size_of(o.window()),
                 o.log_decay());
}

}  // namespace

FusedResults evaluate(const Call& call, bool norms) {
  if (is_fused(call)) {
    return call.dropout > 0 ? fused_forward(with_seed(call), norms)
                            : fused_forward(call, norms);
  }
  FusedResults results{composed(call), {}, {}};
  if (norms) results.norms = composed_norms(call, results.o.detach());
  return results;
}

at::Tensor attention(const at::Tensor& q, const at::Tensor& k,
                     const at::Tensor& v, const AttentionOptions& options) {
  static const auto op =
      find_op<std::remove_pointer_t<decltype(Ops::kAttention)>>(
          "polyattn::attention");
  return call_op(op, q, k, v, options);
}

AttentionWithNorms attention_with_norms(const at::Tensor& q,
                                        const at::Tensor& k,
                                        const at::Tensor& v,
                                        const AttentionOptions& options) {
  static const auto op =
      find_op<std::remove_pointer_t<decltype(Ops::kWithNorms)>>(
          "polyattn::attention_with_norms");
  auto [output, weight, jacobian, score, bad] = call_op(op, q, k, v, options);
  return {output, {weight, jacobian, score, bad}};
}

}  // namespace polyattn

TORCH_LIBRARY_IMPL(polyattn, CompositeImplicitAutograd, m) {
  m.impl("attention", polyattn::Ops::kAttention);
  m.impl("attention_with_norms", polyattn::Ops::kWithNorms);
  m.impl("_composed_attention", polyattn::Ops::kComposed);
  m.impl("canonical_formula", polyattn::canonical_formula);
  m.impl("polynomial_coefficients", polyattn::polynomial_coefficients);
  m.impl("active_target", polyattn::active_target);
}
