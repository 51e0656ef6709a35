// Derivatives of the fused ops. The first comes from the fused backward, that
// of the backward itself from autograd_double.cc.
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "torch/autograd_double.h"
#include "torch/fused.h"
#include "torch/saved_call.h"
#include "torch/tangents.h"

namespace polyattn {
namespace {

using OptionalTensor = c10::optional<at::Tensor>;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// d_o -> those of FusedGradients that are wanted, as a function of d_o and the
// inputs.
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
                               const OptionalTensor& /*log_decay*/,
                               const Call& call, const FusedOutputs& outputs,
                               Wanted wanted) {
    const at::AutoDispatchBelowADInplaceOrView below;
    ctx->set_materialize_grads(false);
    save_config(ctx, call);
    variable_list saved = tensors_of(call);
    saved.insert(saved.end(), {d_o, outputs.rows});
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
    const variable_list saved = ctx->get_saved_variables();
    const auto places = ctx->saved_data["places"].toIntVector();
    variable_list cotangents(kCallTensors);
    bool any = false;
    for (std::size_t i = 0; i < outer.size(); ++i) {
      cotangents[static_cast<std::size_t>(places[i])] = outer[i];
      any = any || outer[i].defined();
    }
    if (!any) return variable_list(kArguments);
    // In the order of forward's arguments: d_o, the seven tensors, the rest.
    variable_list result =
        double_gradients({restore(ctx, saved), saved[kCallTensors],
                          saved[kCallTensors + 1], cotangents});
    result.resize(kArguments);
    return result;
  }

 private:
  static constexpr std::size_t kArguments = 11;
};

class FusedForward : public torch::autograd::Function<FusedForward> {
 public:
  static variable_list forward(AutogradContext* ctx, const at::Tensor& /*q*/,
                               const at::Tensor& /*k*/, const at::Tensor& /*v*/,
                               const OptionalTensor& /*mask*/,
                               const OptionalTensor& /*bias*/,
                               const OptionalTensor& /*coefficients*/,
                               const OptionalTensor& /*log_decay*/,
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
    const OptionalTensor log_decay = if_defined(call.log_decay);
    const std::size_t bias_place = mask ? kBias : kBias - 1;
    const std::size_t coefficient_place = bias ? bias_place + 1 : bias_place;
    const std::size_t last_place =
        coefficients ? coefficient_place + 1 : coefficient_place;
    const Wanted wanted = {
        ctx->needs_input_grad(kQ),
        ctx->needs_input_grad(kK),
        ctx->needs_input_grad(kV),
        coefficients && ctx->needs_input_grad(coefficient_place),
        bias && ctx->needs_input_grad(bias_place),
        log_decay && ctx->needs_input_grad(last_place)};
    const variable_list gradients = FusedBackward::apply(
        outer[0], call.q, call.k, call.v, mask, bias, coefficients, log_decay,
        call,
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

FusedResults differentiable_forward(const Call& call, bool norms) {
  const variable_list results = FusedForward::apply(
      call.q, call.k, call.v, if_defined(call.mask), if_defined(call.bias),
      if_defined(call.coefficients), if_defined(call.log_decay), call, norms);
  return {results[0], results[1], results[2]};
}

}  // namespace

FusedResults forward_with_gradient(const Call& call, bool norms) {
  if (!has_tangent(call)) return differentiable_forward(call, norms);
  SecondCall second = split_tangents(call);
  const FusedResults results = differentiable_forward(second.call, norms);
  second.rows = results.rows;
  results.o._set_fw_grad(output_tangent(second), /*level=*/0,
                         /*is_inplace_op=*/false);
  return results;
}

}  // namespace polyattn
