// Forward mode. torch::autograd::Function has none in C++, so that the kernels'
// forward looks for tangents itself (autograd.cc), as the ops of torch do; and
// attention_jvp, which gives the tangent by the kernel where gradients are
// wanted as well.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/library.h>

#include <array>
#include <tuple>

#include "polyattn/torch/attention.h"
#include "torch/autograd_double.h"
#include "torch/call.h"
#include "torch/find_op.h"
#include "torch/saved_call.h"
#include "torch/tangents.h"

namespace polyattn {
namespace {

using OptionalTensor = c10::optional<at::Tensor>;

// torch has one level of forward mode so far.
constexpr std::uint64_t kLevel = 0;

const at::Tensor& tangent_of(const at::Tensor& t) {
  static const at::Tensor none;
  return t.defined() ? t._fw_grad(kLevel) : none;
}

class DualLevel {
 public:
  DualLevel() : level_(torch::autograd::forward_ad::enter_dual_level()) {}
  ~DualLevel() { torch::autograd::forward_ad::exit_dual_level(level_); }
  DualLevel(const DualLevel&) = delete;
  DualLevel& operator=(const DualLevel&) = delete;

  at::Tensor dual(const char* name, const at::Tensor& t,
                  const OptionalTensor& tangent) const {
    if (!tangent || !tangent->defined()) return t;
    TORCH_CHECK(tangent->sizes() == t.sizes(), "[attention_jvp] ", name,
                "_tangent has size ", tangent->sizes(), ", not that of ", name,
                ", ", t.sizes());
    TORCH_CHECK(tangent->scalar_type() == t.scalar_type(), "[attention_jvp] ",
                name, "_tangent has type ", tangent->scalar_type(), ", ", name,
                " has ", t.scalar_type());
    return at::_make_dual(t, *tangent, static_cast<std::int64_t>(level_));
  }

 private:
  std::uint64_t level_;
};

// What make_call does to the arguments it does to their tangents.
SecondCall call_with_tangents(const at::Tensor& q, const at::Tensor& k,
                              const at::Tensor& v,
                              const AttentionTangents& tangents,
                              AttentionOptions options) {
  const DualLevel level;
  if (tangents.bias && tangents.bias->defined()) {
    TORCH_CHECK(options.bias() && options.bias()->defined(),
                "[attention_jvp] bias_tangent without a bias");
    options.bias(level.dual("bias", *options.bias(), tangents.bias));
  }
  return split_tangents(make_call(level.dual("query", q, tangents.q),
                                  level.dual("key", k, tangents.k),
                                  level.dual("value", v, tangents.v), options));
}

std::tuple<at::Tensor, at::Tensor> attention_jvp_op(
    const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
    const OptionalTensor& tq, const OptionalTensor& tk,
    const OptionalTensor& tv, const OptionalTensor& t_bias,
    const OptionalTensor& attn_mask, bool is_causal,
    c10::optional<double> scale, bool enable_gqa, c10::string_view activation,
    const OptionalTensor& coefficients, c10::string_view causal_alignment,
    const OptionalTensor& bias, at::IntArrayRef window_size) {
  SecondCall second = call_with_tangents(
      q, k, v, {tq, tk, tv, t_bias},
      options_of(attn_mask, 0, is_causal, scale, enable_gqa, activation,
                 coefficients, causal_alignment, "auto", bias, window_size));
  const FusedResults results = evaluate(second.call, false);
  second.rows = results.rows;
  const at::Tensor tangent = output_tangent(second);
  const auto to_user = [&](const at::Tensor& t) {
    std::vector<std::int64_t> sizes = second.call.leading;
    sizes.insert(sizes.end(), {t.size(2), t.size(3)});
    return t.reshape(sizes);
  };
  return {to_user(results.o), to_user(tangent)};
}

}  // namespace

bool has_tangent(const Call& call) {
  for (const at::Tensor& t : tensors_of(call))
    if (tangent_of(t).defined()) return true;
  return false;
}

SecondCall split_tangents(const Call& call) {
  SecondCall second{.call = call, .cotangents = {}};
  Call& own = second.call;
  at::Tensor* const places[kCallTensors] = {
      &own.q,        &own.k, &own.v, &own.mask, &own.bias, &own.coefficients,
      &own.log_decay};
  for (at::Tensor* t : places) {
    second.cotangents.push_back(tangent_of(*t));
    if (second.cotangents.back().defined()) *t = t->_fw_primal(kLevel);
  }
  return second;
}

AttentionWithTangent attention_jvp(const at::Tensor& q, const at::Tensor& k,
                                   const at::Tensor& v,
                                   const AttentionTangents& tangents,
                                   const AttentionOptions& options) {
  static const auto op =
      find_op<decltype(attention_jvp_op)>("polyattn::attention_jvp");
  TORCH_CHECK(options.dropout() == 0, "[attention_jvp] dropout ",
              options.dropout(), " != 0");
  const auto [output, tangent] = op.call(
      q, k, v, tangents.q, tangents.k, tangents.v, tangents.bias,
      options.mask(), options.causal() != Causal::kNone, options.scale(),
      options.gqa(), options.activation(), options.coefficients(),
      options.causal() == Causal::kLast ? "lower_right" : "upper_left",
      options.bias(), window_size_of(options.window()));
  return {output, tangent};
}

}  // namespace polyattn

TORCH_LIBRARY_IMPL(polyattn, CompositeImplicitAutograd, m) {
  m.impl("attention_jvp", polyattn::attention_jvp_op);
}
