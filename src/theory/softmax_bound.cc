// Norms of softmax and of its Jacobian, and their bounds.
#include "theory/softmax_bound.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>

namespace polyattn::theory {
namespace {

// Near the cube root of the unit roundoff, where the two errors of a central
// difference, of order h^2 and 2^-53 / h, are of one size. A power of two.
constexpr double kDifferenceStep = 0x1p-17;
constexpr double kLargestDifferenceScore = 1e8;

void check_row(std::span<const double> scores) {
  if (scores.empty()) {
    throw std::invalid_argument("[theory] a row of softmax without scores");
  }
  for (std::size_t j = 0; j < scores.size(); ++j) {
    if (std::isfinite(scores[j])) continue;
    throw std::invalid_argument("[theory] score " + std::to_string(j) +
                                " of a row of softmax is " +
                                std::to_string(scores[j]) + ", not finite");
  }
}

void check_tokens(std::int64_t tokens) {
  if (tokens >= 1) return;
  throw std::invalid_argument("[theory] tokens " + std::to_string(tokens) +
                              " < 1");
}

void check_matrix(std::span<const double> scores, std::int64_t tokens) {
  check_tokens(tokens);
  const std::size_t size = scores.size();
  const auto n = static_cast<std::size_t>(tokens);
  if (size % n != 0 || size / n != n) {
    throw std::invalid_argument(
        "[theory] " + std::to_string(size) + " scores are no matrix of " +
        std::to_string(tokens) + " x " + std::to_string(tokens));
  }
  for (const double score : scores) {
    if (std::abs(score) <= kLargestDifferenceScore) continue;
    throw std::invalid_argument(
        "[theory] score " + std::to_string(score) +
        " is too large for differences: take scores up to 1e8");
  }
}

// A row of weights, with what stands beside its largest one.
struct SoftmaxRow {
  std::vector<double> p;
  std::size_t top = 0;  // p[top] is the largest
  double rest = 0;      // 1 - p[top], without cancellation
};

SoftmaxRow softmax_parts(std::span<const double> scores) {
  check_row(scores);
  SoftmaxRow row;
  const auto largest = std::max_element(scores.begin(), scores.end());
  row.top = static_cast<std::size_t>(largest - scores.begin());
  row.p.resize(scores.size());
  for (std::size_t j = 0; j < scores.size(); ++j) {
    // The difference may overflow to -inf, whose exponential is 0.
    row.p[j] = std::exp(scores[j] - *largest);
    if (j != row.top) row.rest += row.p[j];
  }
  const double sum = 1 + row.rest;
  for (double& p : row.p) p /= sum;
  row.rest /= sum;
  return row;
}

std::vector<double> softmax_matrix(std::span<const double> scores,
                                   std::size_t n) {
  std::vector<double> weights;
  weights.reserve(scores.size());
  for (std::size_t i = 0; i < scores.size(); i += n) {
    const std::vector<double> row = softmax_row(scores.subspan(i, n));
    weights.insert(weights.end(), row.begin(), row.end());
  }
  return weights;
}

double square(double x) { return x * x; }

}  // namespace

std::vector<double> softmax_row(std::span<const double> scores) {
  return softmax_parts(scores).p;
}

double softmax_row_sq(std::span<const double> scores) {
  double sum = 0;
  for (const double p : softmax_row(scores)) sum += p * p;
  return sum;
}

// sum_j p_j^2 ((1 - p_j)^2 + sum_{k != j} p_k^2), which is
// sum p^2 - 2 sum p^3 + (sum p^2)^2 without its cancellations. Only the largest
// weight can be near 1, so only its complement needs care.
double softmax_row_jacobian_sq(std::span<const double> scores) {
  const SoftmaxRow row = softmax_parts(scores);
  const double top_sq = square(row.p[row.top]);
  double rest_sq = 0;
  for (std::size_t j = 0; j < row.p.size(); ++j) {
    if (j != row.top) rest_sq += square(row.p[j]);
  }
  double sum = top_sq * (square(row.rest) + rest_sq);
  for (std::size_t j = 0; j < row.p.size(); ++j) {
    if (j == row.top) continue;
    const double p_sq = square(row.p[j]);
    sum += p_sq * (square(1 - row.p[j]) + (top_sq + (rest_sq - p_sq)));
  }
  return sum;
}

double softmax_jacobian_sq_by_differences(std::span<const double> scores,
                                          std::int64_t tokens) {
  check_matrix(scores, tokens);
  const auto n = static_cast<std::size_t>(tokens);
  std::vector<double> moved(scores.begin(), scores.end());
  double sum = 0;
  for (std::size_t k = 0; k < moved.size(); ++k) {
    const double above = scores[k] + kDifferenceStep;
    const double below = scores[k] - kDifferenceStep;
    moved[k] = above;
    const std::vector<double> a = softmax_matrix(moved, n);
    moved[k] = below;
    const std::vector<double> b = softmax_matrix(moved, n);
    moved[k] = scores[k];
    for (std::size_t j = 0; j < a.size(); ++j) {
      sum += square((a[j] - b[j]) / (above - below));
    }
  }
  return sum;
}

double softmax_norm_bound(std::int64_t tokens) {
  check_tokens(tokens);
  return std::sqrt(static_cast<double>(tokens));
}

double softmax_norm_minimum(std::int64_t tokens) {
  check_tokens(tokens);
  return 1;
}

double softmax_jacobian_paper_bound(std::int64_t tokens) {
  return 2 * softmax_norm_bound(tokens);
}

double softmax_jacobian_bound(std::int64_t tokens) {
  return tokens == 1 ? 0 : softmax_norm_bound(tokens) / 2;
}

}  // namespace polyattn::theory
