// Derivatives of the fused ops. The first comes from the fused backward; that
// of the backward itself, and all beyond, from the composed definition, which
// torch differentiates.
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "torch/composed.h"
#include "torch/fused.h"

namespace polyattn {
namespace {

using OptionalTensor = c10::optional<at::Tensor>;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Saved between forward and backward: the tensors first, in this order.
constexpr std::size_t kQ = 0, kK = 1, kV = 2, kMask = 3, kCoefficients = 4,
                      kCallTensors = 5;

// Those whose gradients FusedGradients has.
constexpr std::array<std::size_t, 4> kPlaces = {kQ, kK, kV, kCoefficients};

variable_list tensors_of(const FusedCall& call) {
  return {call.q, call.k, call.v, call.attn_mask, call.coefficients};
}

void save_numbers(AutogradContext* ctx, const FusedCall& call) {
  ctx->saved_data["activation"] = call.activation;
  ctx->saved_data["scale"] = call.scale;
  ctx->saved_data["causal"] = call.causal;
  ctx->saved_data["path"] = call.path;
}

FusedCall restore(AutogradContext* ctx, const variable_list& tensors) {
  return {tensors[kQ],
          tensors[kK],
          tensors[kV],
          tensors[kMask],
          tensors[kCoefficients],
          ctx->saved_data["activation"].toStringRef(),
          ctx->saved_data["scale"].toDouble(),
          ctx->saved_data["causal"].toInt(),
          ctx->saved_data["path"].toInt()};
}

at::Tensor composed_output(const FusedCall& call) {
  Call definition;
  definition.q = call.q;
  definition.k = call.k;
  definition.v = call.v;
  definition.attn_mask = call.attn_mask;
  definition.coefficients = call.coefficients;
  definition.activation = parse_activation(call.activation);
  definition.scale = call.scale;
  definition.causal = static_cast<Causal>(call.causal);
  return composed_attention(definition);
}

// A stand-in for t by which the recomputed graph can be differentiated: the
// graph behind t is out of reach, so nothing is counted twice when two
// arguments have a common history. With `connected`, what is computed from it
// is still a function of t, for derivatives of the next order.
at::Tensor stand_in(const at::Tensor& t, bool connected) {
  if (!t.defined() || !t.requires_grad()) return t;
  return connected ? t.view_as(t) : t.detach().requires_grad_(true);
}

FusedCall with_tensors(FusedCall call, const at::Tensor& q, const at::Tensor& k,
                       const at::Tensor& v, const OptionalTensor& mask,
                       const OptionalTensor& coefficients) {
  call.q = q;
  call.k = k;
  call.v = v;
  call.attn_mask = mask.value_or(at::Tensor());
  call.coefficients = coefficients.value_or(at::Tensor());
  return call;
}

// d_o -> those of dq, dk, dv, d_coefficients that are wanted, as a function of
// d_o and the inputs.
class FusedBackward : public torch::autograd::Function<FusedBackward> {
 public:
  static variable_list forward(AutogradContext* ctx, const at::Tensor& d_o,
                               const at::Tensor& q, const at::Tensor& k,
                               const at::Tensor& v, const OptionalTensor& mask,
                               const OptionalTensor& coefficients,
                               const at::Tensor& o, const at::Tensor& rows,
                               const FusedCall& numbers,
                               std::array<bool, 4> wanted) {
    const at::AutoDispatchBelowADInplaceOrView below;
    const FusedCall call = with_tensors(numbers, q, k, v, mask, coefficients);
    ctx->set_materialize_grads(false);
    save_numbers(ctx, call);
    variable_list saved = tensors_of(call);
    saved.push_back(d_o);
    ctx->save_for_backward(saved);
    std::vector<std::int64_t> places;
    variable_list result;
    const FusedGradients gradients = fused_backward(call, d_o, o, rows, wanted);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!wanted[i]) continue;
      places.push_back(static_cast<std::int64_t>(kPlaces[i]));
      result.push_back(gradients[i]);
    }
    ctx->saved_data["places"] = places;
    return result;
  }

  static variable_list backward(AutogradContext* ctx,
                                const variable_list& outer) {
    const bool connected = at::GradMode::is_enabled();
    const at::AutoGradMode graph(true);
    variable_list inputs = ctx->get_saved_variables();
    for (at::Tensor& t : inputs) t = stand_in(t, connected);
    const auto places = ctx->saved_data["places"].toIntVector();
    variable_list by, weights;
    for (std::size_t i = 0; i < outer.size(); ++i) {
      if (!outer[i].defined()) continue;
      by.push_back(inputs[static_cast<std::size_t>(places[i])]);
      weights.push_back(outer[i]);
    }
    if (by.empty()) return variable_list(kArguments);
    const variable_list first = torch::autograd::grad(
        {composed_output(restore(ctx, inputs))}, by, {inputs[kCallTensors]},
        /*retain_graph=*/true, /*create_graph=*/true, /*allow_unused=*/true);
    return second(first, weights, inputs, connected);
  }

 private:
  static constexpr std::size_t kArguments = 10;
  // In the order of forward's arguments: d_o, the five tensors, the rest.
  static variable_list second(const variable_list& first,
                              const variable_list& weights,
                              const variable_list& inputs, bool connected) {
    variable_list result(kArguments);
    variable_list outputs, output_weights, by;
    for (std::size_t i = 0; i < first.size(); ++i) {
      if (!first[i].defined() || !first[i].requires_grad()) continue;
      outputs.push_back(first[i]);
      output_weights.push_back(weights[i]);
    }
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].defined() || !inputs[i].requires_grad()) continue;
      by.push_back(inputs[i]);
      places.push_back(i == kCallTensors ? 0 : i + 1);
    }
    if (outputs.empty() || by.empty()) return result;
    const variable_list gradients = torch::autograd::grad(
        outputs, by, output_weights, /*retain_graph=*/connected,
        /*create_graph=*/connected, /*allow_unused=*/true);
    for (std::size_t i = 0; i < places.size(); ++i) {
      result[places[i]] = gradients[i];
    }
    return result;
  }
};

class FusedForward : public torch::autograd::Function<FusedForward> {
 public:
  static variable_list forward(AutogradContext* ctx, const at::Tensor& q,
                               const at::Tensor& k, const at::Tensor& v,
                               const OptionalTensor& mask,
                               const OptionalTensor& coefficients,
                               const FusedCall& numbers, bool norms) {
    const at::AutoDispatchBelowADInplaceOrView below;
    const FusedCall call = with_tensors(numbers, q, k, v, mask, coefficients);
    const FusedResults results = fused_forward(call, norms);
    save_numbers(ctx, call);
    variable_list saved = tensors_of(call);
    saved.insert(saved.end(), {results.o, results.rows});
    ctx->save_for_backward(saved);
    ctx->mark_non_differentiable({results.rows, results.norms});
    return {results.o, results.rows, results.norms};
  }

  static variable_list backward(AutogradContext* ctx,
                                const variable_list& outer) {
    const variable_list saved = ctx->get_saved_variables();
    const FusedCall call = restore(ctx, saved);
    // torch counts only the arguments that are tensors, and takes no undefined
    // ones.
    const OptionalTensor mask = if_defined(call.attn_mask);
    const OptionalTensor coefficients = if_defined(call.coefficients);
    const std::array<bool, 4> wanted = {
        ctx->needs_input_grad(kQ), ctx->needs_input_grad(kK),
        ctx->needs_input_grad(kV),
        coefficients && ctx->needs_input_grad(mask ? 4 : 3)};
    const variable_list gradients = FusedBackward::apply(
        outer[0], call.q, call.k, call.v, mask, coefficients,
        saved[kCallTensors], saved[kCallTensors + 1], call, wanted);
    variable_list result(kCallTensors + 2);
    auto next = gradients.begin();
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i]) result[kPlaces[i]] = *next++;
    }
    return result;
  }
};

std::tuple<at::Tensor, at::Tensor, at::Tensor> fused_forward_with_gradient(
    const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
    const OptionalTensor& attn_mask, const OptionalTensor& coefficients,
    c10::string_view activation, double scale, std::int64_t causal,
    std::int64_t path, bool norms) {
  FusedCall call;
  call.activation = std::string(activation.data(), activation.size());
  call.scale = scale;
  call.causal = causal;
  call.path = path;
  const variable_list results =
      FusedForward::apply(q, k, v, attn_mask, coefficients, call, norms);
  return {results[0], results[1], results[2]};
}

}  // namespace
}  // namespace polyattn

TORCH_LIBRARY_IMPL(polyattn, Autograd, m) {
  m.impl("_fused_forward", polyattn::fused_forward_with_gradient);
}
