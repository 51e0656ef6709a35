// The Frobenius norms of attention matrices and of their Jacobians, without the
// matrices and, for a polynomial of degree up to 4, in linear time:
//
//   sum_j w(s_ij)^2 = c_0 n_i + q_i . sum_j u(s_ij) k_j,  w(s)^2 = c_0 + s u(s)
//
// is attention with the polynomial u whose values are the keys. For w = s it is
// trace((Q^T Q)(K^T K)). With decay the squares fade with twice the logarithms;
// there what has no linear time is computed by the reference.
#pragma once

#include <span>

#include "polyattn/attention.h"

namespace polyattn {

struct AttentionNormsSq {
  double weight = 0;    // ||A||_F^2
  double jacobian = 0;  // ||dA/dS||_F^2
};

// For each (batch, head): [B, H]. inputs.v is not read. config.path chooses
// among the two ways as for attention; returns the one that was taken. Throws
// as attention_forward does.
Path attention_norms(const AttentionInputs& inputs,
                     const AttentionConfig& config,
                     std::span<AttentionNormsSq> norms, Parallel& parallel);

}  // namespace polyattn
