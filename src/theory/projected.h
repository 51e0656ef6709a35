// Norms in the setting of the paper, scores X W_Q W_K^T X^T / sqrt(D), for
// drawn X, W_Q and W_K. Plain loops in double, independent of the kernels, one
// row of scores in memory at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "polyattn/parallel.h"
#include "theory/expectation.h"
#include "theory/random.h"

namespace polyattn::theory {

// How the rows of X are drawn. Every entry has mean 0 and variance 1.
struct TokenModel {
  // x_i = sqrt(1 - rho) g_i + sqrt(rho) c, with c common to all tokens.
  double correlation = 0;    // rho
  bool heavy_tails = false;  // entries by Random::heavy_tailed, not Gaussian
};

struct ProjectedRequest {
  Setting setting = {};  // of Source::kProjections, not causal
  int max_degree = 1;
  std::int64_t samples = 0;
  std::uint64_t seed = 1;
  Stream stream = Stream::kProjections;
  TokenModel model = {};
};

// Squared Frobenius norms for phi(x) = x^p, undivided.
struct ProjectedNorms {
  double weight_sq = 0;    // A
  double jacobian_sq = 0;  // dA/dS
  double query_sq = 0;     // dA/dQ
  double key_sq = 0;       // dA/dK
  double input_sq = 0;     // dA/dX
};

// [max_degree][samples]: of x^p at [p - 1], all from the same matrices.
std::vector<std::vector<ProjectedNorms>> sample_projected(
    const ProjectedRequest& request, Parallel& parallel);

}  // namespace polyattn::theory
