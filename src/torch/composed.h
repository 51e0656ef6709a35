// The definition of attention in torch ops: for every device and order of
// derivative, with an N x M matrix in memory. It computes in f32, or in f64 if
// the inputs are.
#pragma once

#include "torch/call.h"

namespace polyattn {

// [B, H, N, E]
at::Tensor composed_attention(const Call& call);

// [B, H, 4], as in FusedResults; o is what composed_attention gave.
at::Tensor composed_norms(const Call& call, const at::Tensor& o);

}  // namespace polyattn
