// Expected norms for normal scores, against other ways to compute them: rows
// drawn at random, the softmax of two keys as a logistic function, limits.
#include "theory/gaussian_scores.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>
#include <vector>

#include "theory/matched.h"
#include "theory/random.h"
#include "theory/summary.h"

namespace polyattn::theory::gaussian_scores_test {
namespace {

const Activation kSoftmax = Activation::parse("softmax");

double norm_sq(const std::string& formula, std::int64_t tokens, double std) {
  return gaussian_weight_sq(Activation::parse(formula), tokens, std);
}

// The squared norm of one row of n weights, by the definition.
double drawn_row_sq(const Activation& a, std::int64_t n, double std,
                    Random& random) {
  const auto keys = static_cast<double>(n);
  double squares = 0, sum = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    const double weight = a.weight(std * random.normal(), keys);
    squares += weight * weight;
    sum += weight;
  }
  const double scale =
      a.kind == ActivationKind::kSoftmax ? 1 / sum : a.row_scale(keys);
  return squares * scale * scale;
}

void expect_drawn(const Activation& a, std::int64_t n, double std,
                  Random& random) {
  constexpr std::int64_t kScores = 65'536;
  std::vector<double> rows;
  for (std::int64_t i = 0; i < kScores / n; ++i) {
    rows.push_back(static_cast<double>(n) * drawn_row_sq(a, n, std, random));
  }
  const Interval mean = mean_interval(summarize(rows), 1e-5);
  const double expected = gaussian_weight_sq(a, n, std);
  EXPECT_TRUE(mean.contains(expected))
      << a.to_string() << " N " << n << " std " << std << ": " << expected
      << " not in " << mean.low << " to " << mean.high;
}

// At the matched scale, where it is softmax's too, and at scores of size 1.
TEST(GaussianScores, AreWhatDrawnRowsHave) {
  for (const char* formula :
       {"x^3/sqrt(N)", "x^2/sqrt(N)", "x/sqrt(N)", "x^3/14",
        "(1 + x + x^2/2)/N", "sigmoid", "2 sigmoid(x)/N", "relu^2/sqrt(N)",
        "-3 relu/N"}) {
    const Activation a = Activation::parse(formula);
    for (const std::int64_t n : {16, 64, 256}) {
      Random random({.stream = Stream::kScores, .tokens = n});
      const double scale = matched_gain(a, {.tokens = n}).scale;
      expect_drawn(a, n, scale, random);
      expect_drawn(kSoftmax, n, scale, random);
      expect_drawn(a, n, 1, random);
    }
  }
}

// p = 1/(1 + e^d) for the difference d ~ N(0, 2 std^2) of two scores. By the
// midpoint rule, whose error is that of the trapezoidal rule.
double two_keys(double std) {
  constexpr double kStep = 1e-3;
  double mean = 0;
  for (double z = -10 + kStep / 2; z < 10; z += kStep) {
    const double p = 1 / (1 + std::exp(std * std::numbers::sqrt2 * z));
    mean += kStep * std::exp(-z * z / 2) * (p * p + (1 - p) * (1 - p));
  }
  return 2 * mean / std::sqrt(2 * std::numbers::pi);
}

TEST(GaussianScores, SoftmaxOfOneAndOfTwoKeys) {
  for (const double std : {1e-6, 0.1, 1.0, 3.0, 10.0, kMostScoreStd}) {
    EXPECT_NEAR(gaussian_weight_sq(kSoftmax, 1, std), 1, 1e-12);
    EXPECT_NEAR(gaussian_weight_sq(kSoftmax, 2, std), two_keys(std), 1e-11);
  }
}

// For many keys the row sum is its mean, N e^(s^2/2), and the norm squared
// E e^(2x) / (E e^x)^2 = e^(s^2).
TEST(GaussianScores, SoftmaxTendsToItsLimits) {
  for (const double std : {0.1, 0.5, 1.0}) {
    EXPECT_NEAR(gaussian_weight_sq(kSoftmax, kMostGaussianTokens, std),
                std::exp(std * std), 1e-4);
  }
  // By the first terms of the series in s.
  EXPECT_NEAR(gaussian_weight_sq(kSoftmax, 64, 1e-3) - 1, 1e-6 * 63 / 64,
              1e-11);
  EXPECT_NEAR(gaussian_weight_sq(kSoftmax, kMostGaussianTokens, 1e-12), 1,
              1e-9);
}

// The bound grows as sqrt(N). The norm does not: docs/theory.md has these.
TEST(GaussianScores, NormOfSoftmaxDoesNotGrowLikeItsBound) {
  EXPECT_NEAR(std::sqrt(norm_sq("softmax", 16, 1)), 1.456, 5e-4);
  EXPECT_NEAR(std::sqrt(norm_sq("softmax", 64, 1)), 1.576, 5e-4);
  EXPECT_NEAR(std::sqrt(norm_sq("softmax", 4096, 1)), 1.647, 5e-4);
}

TEST(GaussianScores, SigmoidTendsToItsLimits) {
  // With many keys sigmoid(x - log N) is e^x / N.
  EXPECT_NEAR(norm_sq("sigmoid", kMostGaussianTokens, 0.5), std::exp(0.5),
              1e-4);
  // E sigmoid(x)^2 tends to 1/2 for large scores, from below by s^(-1).
  EXPECT_NEAR(norm_sq("sigmoid(x)/N", 64, kMostScoreStd), 0.5,
              0.5 / kMostScoreStd);
}

TEST(GaussianScores, AreExactForPowers) {
  EXPECT_NEAR(norm_sq("x^3/sqrt(N)", 64, 0.5), 64 * 15 / 64.0, 1e-12);
  EXPECT_NEAR(norm_sq("2 relu^2", 10, 2), 100 * 4 * 3 * 16 / 2.0, 1e-9);
  EXPECT_NEAR(norm_sq("(1 + x + x^2/2)/N", 9, 1), 3.75, 1e-12);
}

TEST(GaussianScores, RefuseOtherSums) {
  EXPECT_THROW(norm_sq("x^4/sum", 8, 1), std::invalid_argument);
  EXPECT_THROW(norm_sq("relu/sum", 8, 1), std::invalid_argument);
}

}  // namespace
}  // namespace polyattn::theory::gaussian_scores_test
