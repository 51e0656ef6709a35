// Attention as a user would write it in torch ops: matmul, softmax, pow. In
// f64, with gradients by torch, and for the formulas of kEagerFormulas alone.
// It shares no line with the library.
#pragma once

#include <torch/types.h>

#include <string>

#include "polyattn/torch/attention.h"

namespace polyattn::test {

inline const std::string kEagerFormulas[] = {
    "softmax", "x^3/sqrt(N)", "1 + x + x^2/2", "x^4/sum", "x^3/14",
    "sigmoid", "sigmoid(x)",  "relu^2/N",      "x^3/sum"};

// All [B, H, N, M].
struct EagerScores {
  at::Tensor s;
  at::Tensor seen;  // bool
  at::Tensor n;     // keys that the row sees, [B, H, N, 1]
};

// q [B, H, N, D] and k [B, G, M, D].
EagerScores eager_scores(const at::Tensor& q, const at::Tensor& k,
                         const AttentionOptions& options);

at::Tensor eager_weights(const EagerScores& scores,
                         const AttentionOptions& options);

// Without dropout.
at::Tensor eager_attention(const at::Tensor& q, const at::Tensor& k,
                           const at::Tensor& v,
                           const AttentionOptions& options);

}  // namespace polyattn::test
