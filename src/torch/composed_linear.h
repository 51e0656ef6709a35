// The linear path in torch ops: for devices that the kernels are not on. Torch
// differentiates it, to any order.
//
//   F(x)_a = prod_i x_(a_i)            features.h; R of them
//   O = (w F(scale Q)) (F(K)^T V) / divisor
//
// Causal attention goes in chunks of rows: keys that all of them see are in the
// sums F(K)^T V, the others are compared one by one. Memory: (N + M) R.
#pragma once

#include "torch/call.h"

namespace polyattn {

// Why it cannot be computed so; empty if it can.
std::string why_not_linear(const Call& call);

// Whether that is expected to take less time than all pairs.
bool is_faster_linear(const Call& call);

// [B, H, N, E]
at::Tensor composed_linear(const Call& call);

}  // namespace polyattn
