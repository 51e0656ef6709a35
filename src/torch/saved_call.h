// What the derivatives of the fused ops have in common: how a call is saved,
// and how one is computed again by torch ops, to be differentiated.
#pragma once

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include <array>
#include <cstdint>
#include <vector>

#include "torch/fused.h"

namespace polyattn {

// Saved between forward and backward: the tensors first, in this order.
inline constexpr std::size_t kQ = 0, kK = 1, kV = 2, kMask = 3, kBias = 4,
                             kCoefficients = 5, kLogDecay = 6, kCallTensors = 7;

// Those whose gradients FusedGradients has.
inline constexpr std::array<std::size_t, 6> kPlaces = {
    kQ, kK, kV, kCoefficients, kBias, kLogDecay};

inline torch::autograd::variable_list tensors_of(const Call& call) {
  return {call.q,        call.k,    call.v,
          call.mask,     call.bias, call.coefficients,
          call.log_decay};
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

inline void save_config(torch::autograd::AutogradContext* ctx,
                        const Call& call) {
  ctx->saved_data["config"] =
      c10::IValue::make_capsule(c10::make_intrusive<SavedConfig>(call));
}

inline Call restore(torch::autograd::AutogradContext* ctx,
                    const torch::autograd::variable_list& tensors) {
  const auto capsule = ctx->saved_data["config"].toCapsule();
  const auto& saved = static_cast<const SavedConfig&>(*capsule);
  return {.q = tensors[kQ],
          .k = tensors[kK],
          .v = tensors[kV],
          .mask = tensors[kMask],
          .bias = tensors[kBias],
          .coefficients = tensors[kCoefficients],
          .log_decay = tensors[kLogDecay],
          .config = saved.config,
          .q_offsets = saved.q_offsets,
          .k_offsets = saved.k_offsets};
}

// A stand-in for t by which the recomputed graph can be differentiated: the
// graph behind t is out of reach, so nothing is counted twice when two
// arguments have a common history. With `connected`, what is computed from it
// is still a function of t, for derivatives of the next order.
inline at::Tensor stand_in(const at::Tensor& t, bool connected) {
  if (!t.defined() || !t.requires_grad()) return t;
  return connected ? t.view_as(t) : t.detach().requires_grad_(true);
}

// The gradients of those outputs that a graph leads to, by `by`, with a graph
// of their own if `graph` says so; undefined where there are none.
inline torch::autograd::variable_list gradients_by(
    const torch::autograd::variable_list& outputs,
    const torch::autograd::variable_list& weights,
    const torch::autograd::variable_list& by, bool graph) {
  torch::autograd::variable_list own, own_weights;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined() || !outputs[i].requires_grad()) continue;
    if (!weights[i].defined()) continue;
    own.push_back(outputs[i]);
    own_weights.push_back(weights[i]);
  }
  if (own.empty() || by.empty())
    return torch::autograd::variable_list(by.size());
  return torch::autograd::grad(own, by, own_weights, /*retain_graph=*/true,
                               /*create_graph=*/graph, /*allow_unused=*/true);
}

}  // namespace polyattn
