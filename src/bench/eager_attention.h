// Attention in plain torch ops, as one would write it without this library:
// the baseline of the fused op in a model.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include "polyattn/torch/attention.h"

namespace polyattn::bench {

// As polyattn::attention on four dimensions, for softmax, c x^p, c x^p/sqrt(N)
// and c x^p/N, full or causal, with a scale; no mask, no coefficients. Throws
// c10::Error for the rest.
torch::Tensor eager_attention(const torch::Tensor& q, const torch::Tensor& k,
                              const torch::Tensor& v,
                              const AttentionOptions& options);

// From now on the modules inside `module` compute attention and gelu in plain
// torch ops.
void make_eager(torch::nn::Module& module);

}  // namespace polyattn::bench
