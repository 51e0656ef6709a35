// The derivative of attention_backward. With cotangents uq, uk, uv, u_bias of
// its results dq, dk, dv, d_bias,
//
//   L = uq . dq + uk . dk + uv . dv + u_bias . d_bias
//
// is a function of d_o, q, k, v and the bias; attention_double_backward gives
// its gradients by these. No N x M matrix is ever in memory, whatever the
// activation. What L is by d_o is what o changes by, if q, k, v and the bias
// change by uq, uk, uv and u_bias: forward mode is the same call without d_o.
//
// Letters, visibility and errors as in attention.h. All of it is dense:
// Path::kLinear is refused, Path::kAuto is the dense path.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "polyattn/attention.h"

namespace polyattn {

struct AttentionDoubleInputs {
  std::span<const RowState> rows;  // as forward gave it
  // [B, H, N, E]. Absent: zero, and nothing but the gradient by d_o is left.
  std::optional<ConstTensor> d_o = {};
  // Those that are absent are zero.
  std::optional<ConstTensor> uq = {};      // as q
  std::optional<ConstTensor> uk = {};      // as k
  std::optional<ConstTensor> uv = {};      // as v
  std::optional<ConstTensor> u_bias = {};  // as the bias, and finite
};

// Those that are absent are not computed.
struct AttentionDoubleGradients {
  std::optional<Tensor> d_o = {};  // [B, H, N, E]
  std::optional<Tensor> dq = {};   // as q
  std::optional<Tensor> dk = {};   // as k
  std::optional<Tensor> dv = {};   // as v
  // As the bias, with a stride of 1 along the keys.
  std::optional<Tensor> d_bias = {};
};

// Bytes of workspace for this call with this many workers. Any alignment will
// do.
std::size_t attention_double_backward_workspace(
    const AttentionInputs& inputs, const AttentionConfig& config,
    const AttentionDoubleInputs& second,
    const AttentionDoubleGradients& gradients, int workers);

void attention_double_backward(const AttentionInputs& inputs,
                               const AttentionConfig& config,
                               const AttentionDoubleInputs& second,
                               const AttentionDoubleGradients& gradients,
                               std::span<std::byte> workspace,
                               Parallel& parallel);

// The same with a workspace of its own.
void attention_double_backward(const AttentionInputs& inputs,
                               const AttentionConfig& config,
                               const AttentionDoubleInputs& second,
                               const AttentionDoubleGradients& gradients,
                               Parallel& parallel);

}  // namespace polyattn
