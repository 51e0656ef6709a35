// By how much the norm of an attention matrix is beside that of softmax.
#pragma once

#include "polyattn/torch/attention.h"

namespace polyattn::nn {

// [B, H]: log(||A||_F / (factor ||softmax||_F)), of the same scores, with
// gradients of every order. 0 where all weights are zero, which no factor
// changes. A and softmax are N x M in memory: this is for experiments.
torch::Tensor log_norm_excess(const torch::Tensor& q, const torch::Tensor& k,
                              const polyattn::AttentionOptions& call,
                              double factor);

}  // namespace polyattn::nn
