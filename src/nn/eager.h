// Attention in plain torch ops, as one would write it without this library:
// what the fused op is measured against.
#pragma once

#include <torch/torch.h>

#include "polyattn/activation.h"
#include "polyattn/attention.h"

namespace polyattn::nn {

struct EagerCall {
  torch::Tensor q;  // [B, H, N, D]
  torch::Tensor k;  // [B, G, M, D]
  torch::Tensor v;  // [B, G, M, D]
  Activation activation;
  Causal causal = Causal::kNone;
  double scale = 1;
  double dropout = 0;  // 0 outside training
};

// softmax, c x^p, c x^p/sqrt(N) and c x^p/N.
bool eager_knows(const Activation& activation);

// [B, H, N, D].
torch::Tensor eager_attention(const EagerCall& call);

}  // namespace polyattn::nn
