// What the kernels of the core compute of a Call, as one of two ops of torch's
// dispatcher (src/torch/schema.cc). fused_forward and fused_backward are the
// way in; the others are what the dispatcher chooses from.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Optional.h>

#include <array>
#include <vector>

#include "torch/call.h"

namespace polyattn {

struct FusedResults {
  at::Tensor o;      // [B, H, N, E]
  at::Tensor rows;   // RowState of each row, for backward alone
  at::Tensor norms;  // [B, H, 4] f64: the members of AttentionStats; or empty
};

// What backward is given beside the call: d_o, and what forward gave.
struct FusedOutputs {
  at::Tensor d_o, o, rows;
};

// Of q, k, v, the coefficients, the bias and log_decay; undefined where not
// wanted.
using FusedGradients = std::array<at::Tensor, 6>;
using Wanted = std::array<bool, 6>;

// The derivative of backward: polyattn/double_backward.h.
struct SecondCall {
  Call call;
  at::Tensor d_o = {};   // undefined: zero
  at::Tensor rows = {};  // as forward gave it
  // Of the tensors of the call, in the order of saved_call.h; undefined: zero.
  std::vector<at::Tensor> cotangents = {};
};

// By d_o, q, k, v and the bias; undefined where not wanted.
using SecondGradients = std::array<at::Tensor, 5>;
using SecondWanted = std::array<bool, 5>;

// Whether torch would not look at what happens inside: no compiler, no
// transform, no mode that is told of every op.
bool is_plain(const Call& call);
bool is_plain(const SecondCall& second);

FusedResults fused_forward(const Call& call, bool norms);
FusedGradients fused_backward(const Call& call, const FusedOutputs& outputs,
                              Wanted wanted);

// attention.cc: by the kernels where they can, otherwise by the definition in
// torch ops.
FusedResults evaluate(const Call& call, bool norms);

// As the arguments of an op have it.
inline c10::optional<at::Tensor> if_defined(const at::Tensor& t) {
  return t.defined() ? c10::optional<at::Tensor>(t) : c10::nullopt;
}

// cpu.cc
FusedResults forward_on_cpu(const Call& call, bool norms);
FusedGradients backward_on_cpu(const Call& call, const FusedOutputs& outputs,
                               Wanted wanted);

// double_cpu.cc
SecondGradients double_on_cpu(const SecondCall& second, SecondWanted wanted);

// meta.cc: shapes without data, for tensors on the device "meta" and tracing.
FusedResults forward_shapes(const Call& call, bool norms);
FusedGradients backward_shapes(const Call& call, const FusedOutputs& outputs,
                               Wanted wanted);

// autograd.cc: fused_forward, differentiable.
FusedResults forward_with_gradient(const Call& call, bool norms);

}  // namespace polyattn
