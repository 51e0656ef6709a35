// The end of nn/center_values.h for whole causal sequences, in one pass and two
// for the gradients, where torch ops would take five and some twenty.
#pragma once

#include <torch/types.h>

namespace polyattn::nn {

// Whether center_causal can have these values.
bool is_center_fused(const torch::Tensor& v);

// o [B, H, N, E + 1] = A with_ones(V), v [B, G, N, E] -> [B, H, N, E].
torch::Tensor center_causal(const torch::Tensor& o, const torch::Tensor& v);

}  // namespace polyattn::nn
