// The bounds of softmax, which hold for every matrix of scores, and a search
// that tries to break them. docs/theory.md proves them.
//
// All functions throw std::invalid_argument ("[theory] ...") for an empty row,
// a score that is not finite, and fewer than one token.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace polyattn::theory {

// softmax of a row, in double, safe for huge scores.
std::vector<double> softmax_row(std::span<const double> scores);

// Of one row p = softmax(s): sum p^2, and the squared Frobenius norm of
// dp/ds = diag(p) - p p^T, in closed form. Both are sums of terms that are not
// negative, so that they stay accurate where a row is nearly one-hot.
double softmax_row_sq(std::span<const double> scores);
double softmax_row_jacobian_sq(std::span<const double> scores);

// The whole N^2 x N^2 Jacobian of softmax by rows of an N x N matrix, by
// central differences in double: its squared Frobenius norm. For small N (the
// time grows with N^4) and scores up to 1e8, beyond which it throws because a
// difference would be lost in their rounding.
double softmax_jacobian_sq_by_differences(std::span<const double> scores,
                                          std::int64_t tokens);

// Bounds on the Frobenius norms over N x N matrices. Norms that are computed in
// double may pass them by rounding, a few units of 1e-16 times N.
double softmax_norm_bound(std::int64_t tokens);            // sqrt(N)
double softmax_norm_minimum(std::int64_t tokens);          // 1
double softmax_jacobian_paper_bound(std::int64_t tokens);  // 2 sqrt(N)
// sqrt(N)/2, tight; 0 for a single token, whose weight is always 1.
double softmax_jacobian_bound(std::int64_t tokens);

// What the search climbs.
enum class SoftmaxNorm : std::uint8_t { kWeights, kJacobian };

struct SearchOptions {
  std::int64_t tokens = 16;  // at most 4096
  int starts = 8;            // random beginnings, over many scales
  int steps = 400;           // at most, from each beginning; 0: only look at it
  std::uint64_t seed = 1;
};

struct SearchResult {
  double largest = 0;            // the largest Frobenius norm that was met
  std::vector<double> scores;    // the N x N matrix that has it
  std::int64_t evaluations = 0;  // of the norm of a row
};

// Gradient ascent on the scores, with an adaptive step and random restarts. The
// squared norm is a sum over rows, so each row is climbed, and its best
// beginning kept, by itself. Knows nothing of where the maximum is.
SearchResult search_largest(SoftmaxNorm norm, const SearchOptions& options);

}  // namespace polyattn::theory
