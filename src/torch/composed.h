// The definition of attention in torch ops: for every device and order of
// derivative, with an N x M matrix in memory. It computes in f32, or in f64 if
// the inputs are.
#pragma once

#include "torch/call.h"

namespace polyattn {

// In the precision of the computation, and once for each query head.
at::Tensor widened(const at::Tensor& t, std::int64_t heads);

// A mask or bias that examples share in turn, once for each of them.
at::Tensor for_each_example(const at::Tensor& t, std::int64_t batch);

// A before dropout: [B, H, N, M].
at::Tensor composed_weights(const Call& call);

// [B, H, N, E]
at::Tensor composed_attention(const Call& call);

// [B, H, 4], as in FusedResults; o is what composed_attention gave.
at::Tensor composed_norms(const Call& call, const at::Tensor& o);

}  // namespace polyattn
