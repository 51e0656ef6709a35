// Derivatives of the fused ops. The first comes from the fused backward; that
// of the backward itself, and all beyond, from the composed definition, which
// torch differentiates.
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include "torch/composed.h"
#include "torch/fused.h"

namespace polyattn {
namespace {

using OptionalTensor = c10::optional<at::Tensor>;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Saved between forward and backward: the tensors first, in this order.
constexpr std::size_t kQ = 0, kK = 1, kV = 2, kMask = 3, kBias = 4,
                      kCoefficients = 5, kCallTensors = 6;

// Those whose gradients FusedGradients has.
constexpr std::array<std::size_t, 5> kPlaces = {kQ, kK, kV, kCoefficients,
                                                kBias};

variable_list tensors_of(const Call& call) {
  return {call.q, call.k, call.v, call.mask, call.bias, call.coefficients};
}

// The rest of a call, for the context of a function.
struct SavedConfig : torch::CustomClassHolder {
  explicit SavedConfig(const Call& call)
      : config(call.config),
        q_offsets(call.q_offsets),
        k_offsets(call.k_offsets) {}
  AttentionConfig config;
  std::vector<std::int64_t> q_offsets, k_offsets;
};

void save_config(AutogradContext* ctx, const Call& call) {
  ctx->saved_data["config"] =
      c10::IValue::make_capsule(c10::make_intrusive<SavedConfig>(call));
}

Call restore(AutogradContext* ctx, const variable_list& tensors) {
  const auto capsule = ctx->saved_data["config"].toCapsule();
  const auto& saved = static_cast<const SavedConfig&>(*capsule);
  return {.q = tensors[kQ],
          .k = tensors[kK],
          .v = tensors[kV],
          .mask = tensors[kMask],
          .bias = tensors[kBias],
          .coefficients = tensors[kCoefficients],
          .config = saved.config,
          .q_offsets = saved.q_offsets,
          .k_offsets = saved.k_offsets};
}

// A stand-in for t by which the recomputed graph can be differentiated: the
// graph behind t is out of reach, so nothing is counted twice when two
// arguments have a common history. With `connected`, what is computed from it
// is still a function of t, for derivatives of the next order.
at::Tensor stand_in(const at::Tensor& t, bool connected) {
  if (!t.defined() || !t.requires_grad()) return t;
  return connected ? t.view_as(t) : t.detach().requires_grad_(true);
}

// d_o -> those of dq, dk, dv, d_coefficients and d_bias that are wanted, as a
// function of d_o and the inputs.
class FusedBackward : public torch::autograd::Function<FusedBackward> {
 public:
  // The tensors of the call are arguments too, because torch looks for those
  // that want gradients among the arguments.
  static variable_list forward(AutogradContext* ctx, const at::Tensor& d_o,
                               const at::Tensor& /*q*/, const at::Tensor& /*k*/,
                               const at::Tensor& /*v*/,
                               const OptionalTensor& /*mask*/,
                               const OptionalTensor& /*bias*/,
                               const OptionalTensor& /*coefficients*/,
                               const Call& call, const FusedOutputs& outputs,
                               Wanted wanted) {
    const at::AutoDispatchBelowADInplaceOrView below;
    ctx->set_materialize_grads(false);
    save_config(ctx, call);
    variable_list saved = tensors_of(call);
    saved.push_back(d_o);
    ctx->save_for_backward(saved);
    std::vector<std::int64_t> places;
    variable_list result;
    const FusedGradients gradients = fused_backward(call, outputs, wanted);
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
        {composed_attention(restore(ctx, inputs))}, by, {inputs[kCallTensors]},
        /*retain_graph=*/true, /*create_graph=*/true, /*allow_unused=*/true);
    return second(first, weights, inputs, connected);
  }

 private:
  static constexpr std::size_t kArguments = 10;
  // In the order of forward's arguments: d_o, the six tensors, the rest.
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
  static variable_list forward(AutogradContext* ctx, const at::Tensor& /*q*/,
                               const at::Tensor& /*k*/, const at::Tensor& /*v*/,
                               const OptionalTensor& /*mask*/,
                               const OptionalTensor& /*bias*/,
                               const OptionalTensor& /*coefficients*/,
                               const Call& call, bool norms) {
    const at::AutoDispatchBelowADInplaceOrView below;
    const FusedResults results = fused_forward(call, norms);
    save_config(ctx, call);
    variable_list saved = tensors_of(call);
    saved.insert(saved.end(), {results.o, results.rows});
    ctx->save_for_backward(saved);
    ctx->mark_non_differentiable({results.rows, results.norms});
    return {results.o, results.rows, results.norms};
  }

  static variable_list backward(AutogradContext* ctx,
                                const variable_list& outer) {
    const variable_list saved = ctx->get_saved_variables();
    const Call call = restore(ctx, saved);
    // torch counts only the arguments that are tensors, and takes no undefined
    // ones.
    const OptionalTensor mask = if_defined(call.mask);
    const OptionalTensor bias = if_defined(call.bias);
    const OptionalTensor coefficients = if_defined(call.coefficients);
    const std::size_t bias_place = mask ? kBias : kBias - 1;
    const std::size_t last_place = bias ? bias_place + 1 : bias_place;
    const Wanted wanted = {ctx->needs_input_grad(kQ), ctx->needs_input_grad(kK),
                           ctx->needs_input_grad(kV),
                           coefficients && ctx->needs_input_grad(last_place),
                           bias && ctx->needs_input_grad(bias_place)};
    const variable_list gradients = FusedBackward::apply(
        outer[0], call.q, call.k, call.v, mask, bias, coefficients, call,
        FusedOutputs{outer[0], saved[kCallTensors], saved[kCallTensors + 1]},
        wanted);
    variable_list result(kCallTensors + 2);
    auto next = gradients.begin();
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i]) result[kPlaces[i]] = *next++;
    }
    return result;
  }
};

}  // namespace

FusedResults forward_with_gradient(const Call& call, bool norms) {
  const variable_list results = FusedForward::apply(
      call.q, call.k, call.v, if_defined(call.mask), if_defined(call.bias),
      if_defined(call.coefficients), call, norms);
  return {results[0], results[1], results[2]};
}

}  // namespace polyattn
