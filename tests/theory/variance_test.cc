// The exact variance of squared norms against values worked by hand and against
// quadrature over every random number.
#include "theory/variance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

namespace polyattn::theory::variance_test {
namespace {

TEST(Variance, OfOneScoreOfWidthOne) {
  // (q k)^2: E q^4 k^4 - 1 = 8.
  const Activation x = Activation::parse("x");
  EXPECT_NEAR(weight_sq_variance(x, {.tokens = 1, .width = 1}), 8, 1e-12);
  EXPECT_EQ(jacobian_sq_variance(x, {.tokens = 1, .width = 1}), 0);
  // phi' = 2 x: 16 times the above.
  EXPECT_NEAR(
      jacobian_sq_variance(Activation::parse("x^2"), {.tokens = 1, .width = 1}),
      128, 1e-9);
}

// ||Q K^T||^2 = tr(Q^T Q K^T K), Wishart matrices of D = 1: |q|^2 |k|^2, with
// E|q|^4 = N (N + 2).
TEST(Variance, OfWidthOneIsThatOfAProductOfLengths) {
  const double n = 6;
  EXPECT_NEAR(
      weight_sq_variance(Activation::parse("x"), {.tokens = 6, .width = 1}),
      std::pow(n * (n + 2), 2) - std::pow(n, 4), 1e-9);
}

// Gauss-Hermite quadrature: the mean of a polynomial of degree 2 count - 1 in a
// N(0, 1) number is the exact weighted sum over these places.
struct Quadrature {
  std::vector<double> places, weights;
};

// He_n(x) and He_(n - 1)(x).
std::pair<double, double> hermite(int n, double x) {
  double now = 1, before = 0;
  for (int k = 0; k < n; ++k) {
    const double next = x * now - k * before;
    before = now;
    now = next;
  }
  return {now, before};
}

Quadrature quadrature(int count) {
  Quadrature result;
  double factorial = 1;
  for (int k = 2; k < count; ++k) factorial *= k;
  constexpr double kStep = 1.0 / 64;
  for (double low = -8 - kStep / 3; low < 8; low += kStep) {
    double a = low, b = low + kStep;
    const bool rising = hermite(count, a).first < 0;
    if (rising == (hermite(count, b).first < 0)) continue;
    for (int i = 0; i < 60; ++i) {
      const double middle = (a + b) / 2;
      ((hermite(count, middle).first < 0) == rising ? a : b) = middle;
    }
    const double below = hermite(count, a).second;
    result.places.push_back(a);
    result.weights.push_back(factorial / (count * below * below));
  }
  return result;
}

struct Squares {
  double weight_sq = 0, jacobian_sq = 0;
};

// numbers: Q, then K.
Squares squares_of(const Activation& a, const Setting& s,
                   const std::vector<double>& numbers) {
  const auto n = static_cast<std::size_t>(s.tokens);
  const auto d = static_cast<std::size_t>(s.width);
  Squares squares;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t keys = s.causal ? i + 1 : n;
    const auto count = static_cast<double>(keys);
    for (std::size_t j = 0; j < keys; ++j) {
      double score = 0;
      for (std::size_t l = 0; l < d; ++l) {
        score += numbers[i * d + l] * numbers[(n + j) * d + l];
      }
      score /= std::sqrt(static_cast<double>(d));
      const double scale = a.row_scale(count);
      squares.weight_sq += std::pow(scale * a.weight(score, count), 2);
      squares.jacobian_sq +=
          std::pow(scale * a.weight_derivative(score, count), 2);
    }
  }
  return squares;
}

// Mean squared distances from the exact means, over all places of all numbers.
Squares variances_of(const Activation& a, const Setting& s) {
  const Quadrature rule = quadrature(2 * a.degree + 1);
  const auto size = static_cast<std::size_t>(2 * s.tokens * s.width);
  const double weight_mean = expected_weight_sq(a, s);
  const double jacobian_mean = expected_jacobian_sq(a, s);
  std::vector<std::size_t> at(size);
  std::vector<double> numbers(size);
  Squares sum;
  for (;;) {
    double weight = 1;
    for (std::size_t i = 0; i < size; ++i) {
      numbers[i] = rule.places[at[i]];
      weight *= rule.weights[at[i]];
    }
    const Squares squares = squares_of(a, s, numbers);
    sum.weight_sq += weight * std::pow(squares.weight_sq - weight_mean, 2);
    sum.jacobian_sq +=
        weight * std::pow(squares.jacobian_sq - jacobian_mean, 2);
    std::size_t digit = 0;
    while (digit < size && ++at[digit] == rule.places.size()) at[digit++] = 0;
    if (digit == size) return sum;
  }
}

class VarianceOf : public testing::TestWithParam<const char*> {};

TEST_P(VarianceOf, IsThatOfQuadrature) {
  const Activation a = Activation::parse(GetParam());
  struct Size {
    std::int64_t tokens, width;
  };
  for (const Size size : {Size{2, 1}, Size{1, 3}, Size{3, 1}, Size{2, 2}}) {
    // 5^8 places for the largest at degree 2.
    if (size.tokens * size.width > 3 && a.degree > 2) continue;
    for (const bool causal : {false, true}) {
      const Setting setting{
          .tokens = size.tokens, .width = size.width, .causal = causal};
      const Squares exact = variances_of(a, setting);
      EXPECT_NEAR(weight_sq_variance(a, setting), exact.weight_sq,
                  1e-9 * exact.weight_sq);
      EXPECT_NEAR(jacobian_sq_variance(a, setting), exact.jacobian_sq,
                  1e-9 * exact.jacobian_sq + 1e-12);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formulas, VarianceOf,
                         testing::Values("x", "x^2", "x^2/sqrt(N)", "x^3/N",
                                         "1 + x + x^2/4",
                                         "(x - x^2/3)/sqrt(N)"));

TEST(Variance, IsKnownForIndependentQueriesAndKeysOnly) {
  const Activation x = Activation::parse("x");
  EXPECT_THROW(weight_sq_variance(x, {.tokens = 4,
                                      .width = 4,
                                      .source = Source::kProjections,
                                      .channels = 4}),
               std::invalid_argument);
  EXPECT_THROW(weight_sq_variance(Activation::parse("softmax"),
                                  {.tokens = 4, .width = 4}),
               std::invalid_argument);
  EXPECT_THROW(weight_sq_variance(x, {.tokens = 0, .width = 4}),
               std::invalid_argument);
}

}  // namespace
}  // namespace polyattn::theory::variance_test
