#include "torch/fused.h"

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <tuple>

#include "torch/find_op.h"

namespace polyattn {
namespace {

using OptionalTensor = c10::optional<at::Tensor>;
using Forward = FusedResults(const Call& call, bool norms);
using Backward = FusedGradients(const Call& call, const FusedOutputs& outputs,
                                Wanted wanted);

// From here on a formula is text: what goes through the dispatcher is flat.
AttentionConfig config_of(const at::Tensor& q, c10::string_view activation,
                          double scale, std::int64_t causal, std::int64_t path,
                          double dropout, std::int64_t seed,
                          at::IntArrayRef window_size) {
  return {.activation = parse_activation(activation),
          .scale = scale,
          .causal = static_cast<Causal>(causal),
          .compute = compute_type(q),
          .path = static_cast<Path>(path),
          .dropout = {.p = dropout, .seed = static_cast<std::uint64_t>(seed)},
          .window = window_of(window_size)};
}

template <Forward* forward>
std::tuple<at::Tensor, at::Tensor, at::Tensor> forward_op(
    const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
    const OptionalTensor& mask, const OptionalTensor& bias,
    const OptionalTensor& coefficients, const OptionalTensor& log_decay,
    c10::string_view activation, double scale, std::int64_t causal,
    std::int64_t path, double dropout, std::int64_t seed,
    at::IntArrayRef window_size, bool norms) {
  const FusedResults results = forward(
      {q, k, v, mask.value_or(at::Tensor()), bias.value_or(at::Tensor()),
       coefficients.value_or(at::Tensor()), log_decay.value_or(at::Tensor()),
       config_of(q, activation, scale, causal, path, dropout, seed,
                 window_size)},
      norms);
  return {results.o, results.rows, results.norms};
}

template <Backward* backward>
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor,
           at::Tensor>
backward_op(const at::Tensor& d_o, const at::Tensor& q, const at::Tensor& k,
            const at::Tensor& v, const OptionalTensor& mask,
            const OptionalTensor& bias, const OptionalTensor& coefficients,
            const OptionalTensor& log_decay, const at::Tensor& o,
            const at::Tensor& rows, c10::string_view activation, double scale,
            std::int64_t causal, std::int64_t path, double dropout,
            std::int64_t seed, at::IntArrayRef window_size, Wanted wanted) {
  const auto [dq, dk, dv, dc, d_bias, d_log_decay] = backward(
      {q, k, v, mask.value_or(at::Tensor()), bias.value_or(at::Tensor()),
       coefficients.value_or(at::Tensor()), log_decay.value_or(at::Tensor()),
       config_of(q, activation, scale, causal, path, dropout, seed,
                 window_size)},
      {d_o, o, rows}, wanted);
  return {dq, dk, dv, dc, d_bias, d_log_decay};
}

// The ops below the dispatcher know no packed batches: there _opaque_forward is
// what a mode sees.
void check_not_packed(const Call& call) {
  TORCH_CHECK(call.q_offsets.empty(),
              "[attention_varlen] no packed batch under a mode of torch that "
              "looks at every op: call polyattn.attention on each sequence");
}

FusedResults dispatch_forward(const Call& call, bool norms) {
  check_not_packed(call);
  static const auto op =
      find_op<decltype(forward_op<forward_on_cpu>)>("polyattn::_fused_forward");
  const AttentionConfig& c = call.config;
  auto [o, rows, statistics] = op.call(
      call.q, call.k, call.v, if_defined(call.mask), if_defined(call.bias),
      if_defined(call.coefficients), if_defined(call.log_decay),
      c.activation.to_string(), *c.scale, static_cast<std::int64_t>(c.causal),
      static_cast<std::int64_t>(c.path), c.dropout.p,
      static_cast<std::int64_t>(c.dropout.seed), window_size_of(c.window),
      norms);
  return {o, rows, statistics};
}

FusedGradients dispatch_backward(const Call& call, const FusedOutputs& outputs,
                                 Wanted wanted) {
  check_not_packed(call);
  static const auto op = find_op<decltype(backward_op<backward_on_cpu>)>(
      "polyattn::_fused_backward");
  const AttentionConfig& c = call.config;
  auto [dq, dk, dv, dc, d_bias, d_log_decay] = op.call(
      outputs.d_o, call.q, call.k, call.v, if_defined(call.mask),
      if_defined(call.bias), if_defined(call.coefficients),
      if_defined(call.log_decay), outputs.o, outputs.rows,
      c.activation.to_string(), *c.scale, static_cast<std::int64_t>(c.causal),
      static_cast<std::int64_t>(c.path), c.dropout.p,
      static_cast<std::int64_t>(c.dropout.seed), window_size_of(c.window),
      wanted);
  return {dq, dk, dv, dc, d_bias, d_log_decay};
}

// What the dispatcher would look at: the kinds of tensors, and the modes that
// are on.
c10::DispatchKeySet keys_among(at::ArrayRef<at::Tensor> tensors) {
  const c10::impl::LocalDispatchKeySet local =
      c10::impl::tls_local_dispatch_key_set();
  c10::DispatchKeySet keys = local.included_;
  for (const at::Tensor& t : tensors) {
    if (t.defined()) keys = keys | t.key_set();
  }
  return keys - local.excluded_;
}

// Plain tensors on the CPU, and nobody who listens: the dispatcher would add
// gradients, and otherwise do nothing but turn the call into text and back.
bool is_plain(const Call& call, c10::DispatchKeySet keys) {
  using c10::DispatchKey;
  const c10::DispatchKeySet plain(
      {DispatchKey::Dense, DispatchKey::AutogradFunctionality,
       DispatchKey::ADInplaceOrView, DispatchKey::BackendSelect,
       DispatchKey::AutocastCPU});
  return call.q.is_cpu() &&
         (keys - plain).highestPriorityTypeId() == DispatchKey::Undefined;
}

c10::DispatchKeySet keys_of(const Call& call) {
  return keys_among({call.q, call.k, call.v, call.mask, call.bias,
                     call.coefficients, call.log_decay});
}

}  // namespace

bool is_plain(const Call& call) { return is_plain(call, keys_of(call)); }

bool is_plain(const SecondCall& second) {
  return is_plain(second.call, keys_of(second.call) |
                                   keys_among({second.d_o, second.rows}) |
                                   keys_among(second.cotangents));
}

FusedResults fused_forward(const Call& call, bool norms) {
  const c10::DispatchKeySet keys = keys_of(call);
  if (!is_plain(call, keys)) return dispatch_forward(call, norms);
  return keys.has(c10::DispatchKey::AutogradCPU)
             ? forward_with_gradient(call, norms)
             : forward_on_cpu(call, norms);
}

FusedGradients fused_backward(const Call& call, const FusedOutputs& outputs,
                              Wanted wanted) {
  const c10::DispatchKeySet keys = keys_among(
      {call.q, call.k, call.v, call.mask, call.bias, call.coefficients,
       call.log_decay, outputs.d_o, outputs.o, outputs.rows});
  return is_plain(call, keys) ? backward_on_cpu(call, outputs, wanted)
                              : dispatch_backward(call, outputs, wanted);
}

}  // namespace polyattn

TORCH_LIBRARY_IMPL(polyattn, CPU, m) {
  m.impl("_fused_forward", polyattn::forward_op<polyattn::forward_on_cpu>);
  m.impl("_fused_backward", polyattn::backward_op<polyattn::backward_on_cpu>);
}

TORCH_LIBRARY_IMPL(polyattn, Meta, m) {
  m.impl("_fused_forward", polyattn::forward_op<polyattn::forward_shapes>);
  m.impl("_fused_backward", polyattn::backward_op<polyattn::backward_shapes>);
}

TORCH_LIBRARY_IMPL(polyattn, Autograd, m) {
  m.impl("_fused_forward",
         polyattn::forward_op<polyattn::forward_with_gradient>);
}
