// Centred values: O = A (V - m) + m, where m is the mean of the values that the
// row sees. Rows of A then act as if they summed to 1, without a division.
//
// One mean for all rows is subtracted before attention. Where rows see
// different keys, o_i = sum_j a_ij v_j + (1 - sum_j a_ij) m_i: values get a
// column of ones, which attention turns into the sums of A's rows, whichever
// path it takes, and in the sums that m_i is made of it counts the keys.
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "polyattn/attention.h"

namespace polyattn::nn {

// [..., E] -> [..., E + 1].
torch::Tensor with_ones(const torch::Tensor& v);

// From o [B, H, N, E + 1] = A with_ones(V), and for each row the sum of
// with_ones(V) over what it sees, [B, G, R, N, E + 1], R = H/G; R and N may be
// 1 where there is no difference. -> [B, H, N, E].
torch::Tensor center_output(const torch::Tensor& o, const torch::Tensor& sums);

struct CenterCall {
  torch::Tensor mask;  // as polyattn::attention has it; or undefined
  Causal causal = Causal::kNone;
  std::int64_t rows = 0;  // N
};

// What to attend to in place of v, and what to make of the result.
class CenteredValues {
 public:
  // v [B, G, M, E].
  CenteredValues(const torch::Tensor& v, const CenterCall& call);

  const torch::Tensor& values() const { return values_; }

  // o [B, H, N, ...] = A values() -> [B, H, N, E].
  torch::Tensor output(const torch::Tensor& o) const;

 private:
  torch::Tensor values_;
  // One of the three, for output().
  torch::Tensor mean_;   // of all rows, [B, G, 1, 1, E]
  torch::Tensor whole_;  // v of a causal sequence, for center_causal()
  torch::Tensor sums_;   // for center_output()
};

}  // namespace polyattn::nn
