// Norms of attention matrices for drawn queries and keys, from the statistics
// of the kernels: no N x N matrix at any length.
#pragma once

#include <cstdint>
#include <vector>

#include "polyattn/activation.h"
#include "polyattn/parallel.h"
#include "theory/random.h"

namespace polyattn::theory {

// One way to turn the same queries and keys into a matrix.
struct MatrixCase {
  Activation activation = {};
  bool causal = false;
  double temperature = 1;  // scores are temperature * q . k / sqrt(D)
};

struct SampleRequest {
  std::int64_t tokens = 0;  // N
  std::int64_t width = 0;   // D
  std::int64_t samples = 0;
  std::uint64_t seed = 1;
  Stream stream = Stream::kQueriesKeys;
  std::vector<MatrixCase> cases = {};
};

// Squared Frobenius norms, one of each matrix.
struct SampledNorms {
  std::vector<double> weight_sq;    // A
  std::vector<double> jacobian_sq;  // dA/dS
};

// [cases]: all of the same matrices, whose entries are independent, N(0, 1).
std::vector<SampledNorms> sample_norms(const SampleRequest& request,
                                       Parallel& parallel);

// How far the kernels' f32 can put a squared norm of x^degree off, relatively.
// A score is off by (D + 3) u times the sum of its absolute terms, which is
// less than sqrt(D) times a typical score, and enters 2 degree times; sums
// over a block of keys, a few hundred at most, are made in f32.
double kernel_rounding(int degree, std::int64_t width);

// N(0, 1) numbers in f32.
std::vector<float> normal_floats(std::int64_t count, Random& random);

}  // namespace polyattn::theory
