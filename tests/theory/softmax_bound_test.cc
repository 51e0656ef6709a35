// Softmax: the closed forms against the explicit Jacobian and against
// differences, the bounds against cases that reach them, and the search against
// the bounds.
#include "theory/softmax_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/message_of.h"

namespace polyattn::theory::softmax_bound_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

using Row = std::vector<double>;

// Evenly spread scores in (-scale, scale); mt19937_64 itself is the same
// everywhere.
Row random_row(std::size_t size, double scale, std::mt19937_64& random) {
  Row row(size);
  for (double& score : row) {
    score = scale * (static_cast<double>(random() >> 11) * 0x1p-52 - 1);
  }
  return row;
}

std::vector<long double> softmax_twin(const Row& scores) {
  const long double top = *std::max_element(scores.begin(), scores.end());
  std::vector<long double> p(scores.size());
  long double sum = 0;
  for (std::size_t j = 0; j < p.size(); ++j) {
    sum += p[j] = std::exp(scores[j] - top);
  }
  for (long double& x : p) x /= sum;
  return p;
}

// Entry by entry of diag(p) - p p^T.
double jacobian_sq_twin(const Row& scores) {
  const std::vector<long double> p = softmax_twin(scores);
  long double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    for (std::size_t j = 0; j < p.size(); ++j) {
      const long double entry = (i == j ? p[i] : 0) - p[i] * p[j];
      sum += entry * entry;
    }
  }
  return static_cast<double>(sum);
}

double matrix_jacobian_sq(const Row& scores, std::int64_t tokens) {
  double sum = 0;
  for (std::int64_t i = 0; i < tokens; ++i) {
    sum +=
        softmax_row_jacobian_sq(std::span(scores).subspan(i * tokens, tokens));
  }
  return sum;
}

TEST(SoftmaxRow, IsSoftmax) {
  std::mt19937_64 random(1);
  for (const std::size_t size : {1, 2, 3, 17, 64}) {
    for (const double scale : {1e-6, 1.0, 30.0, 500.0}) {
      const Row scores = random_row(size, scale, random);
      const std::vector<long double> twin = softmax_twin(scores);
      const Row p = softmax_row(scores);
      double sq = 0;
      for (std::size_t j = 0; j < size; ++j) {
        // exp(x) carries the rounding of x, up to 1000 units.
        EXPECT_NEAR(p[j], twin[j], 1e-12 * twin[j]);
        sq += static_cast<double>(twin[j] * twin[j]);
      }
      EXPECT_NEAR(softmax_row_sq(scores), sq, 1e-12 * sq);
    }
  }
}

TEST(SoftmaxRow, JacobianEqualsTheExplicitMatrix) {
  std::mt19937_64 random(2);
  for (const std::size_t size : {1, 2, 3, 17, 64}) {
    for (const double scale : {1e-6, 0.1, 1.0, 5.0, 30.0}) {
      const Row scores = random_row(size, scale, random);
      const double twin = jacobian_sq_twin(scores);
      // The entry of the twin at the largest weight cancels: below 1e-19.
      EXPECT_NEAR(softmax_row_jacobian_sq(scores), twin, 1e-12 * twin + 1e-30)
          << size << ' ' << scale;
    }
  }
}

// Two scores at distance d: p = 1 / (1 + e^-d), all four entries are
// +-p (1 - p), so the squared norm is 4 p^2 (1 - p)^2 down to the tiniest.
TEST(SoftmaxRow, JacobianIsAccurateNextToOneHot) {
  for (double d = 0; d < 340; d += 3.7) {
    const double e = std::exp(-d);
    const double entry = e / (1 + e) / (1 + e);
    const double sq = 4 * entry * entry;
    EXPECT_NEAR(softmax_row_jacobian_sq(Row{d, 0}), sq, 1e-14 * sq) << d;
  }
}

TEST(SoftmaxRow, JacobianEqualsDifferences) {
  std::mt19937_64 random(3);
  for (const std::int64_t tokens : {1, 2, 3, 8}) {
    for (const double scale : {1e-3, 1.0, 10.0, 1e3, 1e7}) {
      const Row scores = random_row(tokens * tokens, scale, random);
      // An entry is off by 2^-34 / 6 times a third derivative below 1 and by
      // 2^-52 / 2^-17 of rounding, and by the shift of its scores by up to
      // 2^-52 scale where that is more than the step: 1e-9 in all below 1e6.
      const double entry = 1e-9 + 0x1p-50 * scale;
      const double norm = std::sqrt(matrix_jacobian_sq(scores, tokens));
      EXPECT_NEAR(std::sqrt(softmax_jacobian_sq_by_differences(scores, tokens)),
                  norm, entry * std::pow(static_cast<double>(tokens), 1.5))
          << tokens << ' ' << scale;
    }
  }
}

TEST(SoftmaxRow, KnowsTheExtremes) {
  for (const std::size_t size : {2, 3, 16, 100}) {
    const auto n = static_cast<double>(size);
    Row scores(size, 1e300);
    EXPECT_NEAR(softmax_row_sq(scores), 1 / n, 1e-15);
    // Ties of m: (m - 1)/m^2.
    EXPECT_NEAR(softmax_row_jacobian_sq(scores), (n - 1) / n / n, 1e-15);
    scores.assign(size, -1e308);
    scores[1] = 1e308;  // a difference that overflows
    EXPECT_EQ(softmax_row_sq(scores), 1);
    EXPECT_EQ(softmax_row_jacobian_sq(scores), 0);
    scores[0] = 1e308;  // a tie of two
    EXPECT_EQ(softmax_row_sq(scores), 0.5);
    EXPECT_EQ(softmax_row_jacobian_sq(scores), 0.25);
    scores.assign(size, 1e-300);
    scores[0] = -1e-300;
    EXPECT_NEAR(softmax_row_sq(scores), 1 / n, 1e-15);
  }
  EXPECT_EQ(softmax_row(Row{5.0}), Row{1.0});
  EXPECT_EQ(softmax_row_jacobian_sq(Row{5.0}), 0);
}

TEST(SoftmaxBound, HasItsValues) {
  EXPECT_EQ(softmax_norm_bound(16), 4);
  EXPECT_EQ(softmax_norm_minimum(16), 1);
  EXPECT_EQ(softmax_jacobian_paper_bound(16), 8);
  EXPECT_EQ(softmax_jacobian_bound(16), 2);
  EXPECT_EQ(softmax_jacobian_bound(1), 0);
  EXPECT_THROW(softmax_norm_bound(0), std::invalid_argument);
  EXPECT_THROW(softmax_norm_minimum(0), std::invalid_argument);
  EXPECT_THROW(softmax_jacobian_paper_bound(-1), std::invalid_argument);
  EXPECT_THROW(softmax_jacobian_bound(0), std::invalid_argument);
}

TEST(SoftmaxBound, HoldsForRandomRows) {
  std::mt19937_64 random(4);
  for (const std::size_t size : {1, 2, 3, 4, 5, 16, 65}) {
    for (double scale = 1e-3; scale < 1e4; scale *= 3) {
      for (int sample = 0; sample < 20; ++sample) {
        const Row scores = random_row(size, scale, random);
        const double sq = softmax_row_sq(scores);
        EXPECT_LE(sq, 1 + 1e-14);
        EXPECT_GE(sq, (1 - 1e-14) / static_cast<double>(size));
        EXPECT_LE(softmax_row_jacobian_sq(scores), 0.25 * (1 + 1e-14));
        // The step of the proof: sum p^2 (1 - sum p^2) lies between.
        EXPECT_LE(softmax_row_jacobian_sq(scores), sq * (1 - sq) + 1e-14);
      }
    }
  }
}

// With finite scores the bound is met exactly for two keys, and for more only
// approached.
TEST(SoftmaxBound, IsApproachedByTies) {
  EXPECT_EQ(softmax_row_jacobian_sq(Row{0.3, 0.3}), 0.25);
  double before = 0;
  for (double distance = 0; distance < 30; distance += 2) {
    const double sq = softmax_row_jacobian_sq(Row{distance, distance, 0, 0, 0});
    EXPECT_GT(sq, before);
    EXPECT_LT(sq, 0.25);
    before = sq;
  }
  EXPECT_NEAR(before, 0.25, 1e-11);
}

TEST(SoftmaxSearch, ReachesTheBoundsAndDoesNotPassThem) {
  for (const std::int64_t tokens : {2, 5, 16}) {
    for (const std::uint64_t seed : {1, 2, 3}) {
      const SearchOptions options{.tokens = tokens, .seed = seed};
      const double weights =
          search_largest(SoftmaxNorm::kWeights, options).largest;
      const double jacobian =
          search_largest(SoftmaxNorm::kJacobian, options).largest;
      EXPECT_GT(weights, 0.9999 * softmax_norm_bound(tokens));
      EXPECT_LE(weights, softmax_norm_bound(tokens) * (1 + 1e-13));
      EXPECT_GT(jacobian, 0.9999 * softmax_jacobian_bound(tokens));
      EXPECT_LE(jacobian, softmax_jacobian_bound(tokens) * (1 + 1e-13));
    }
  }
}

// A claim that is ten per cent too bold is found out, also with three tokens,
// where a tie of three (0.943 of the bound) is a local maximum.
TEST(SoftmaxSearch, RefutesABoundThatIsTooSmall) {
  for (const std::int64_t tokens : {2, 3, 4, 7, 16, 33}) {
    const SearchOptions options{.tokens = tokens};
    EXPECT_GT(search_largest(SoftmaxNorm::kWeights, options).largest,
              0.9 * softmax_norm_bound(tokens));
    EXPECT_GT(search_largest(SoftmaxNorm::kJacobian, options).largest,
              0.9 * softmax_jacobian_bound(tokens));
  }
}

TEST(SoftmaxSearch, ReturnsTheMatrixThatItFound) {
  const SearchOptions options{.tokens = 8, .starts = 2, .steps = 30, .seed = 9};
  const SearchResult found = search_largest(SoftmaxNorm::kJacobian, options);
  ASSERT_EQ(found.scores.size(), 64);
  EXPECT_NEAR(found.largest, std::sqrt(matrix_jacobian_sq(found.scores, 8)),
              1e-14);
  EXPECT_NEAR(found.largest,
              std::sqrt(softmax_jacobian_sq_by_differences(found.scores, 8)),
              1e-7);
  EXPECT_GE(found.evaluations, 8 * 2);
  EXPECT_LE(found.evaluations, 8 * 2 * 31);
}

TEST(SoftmaxSearch, ClimbsAndIsTheSameForASeed) {
  SearchOptions options{.tokens = 8, .starts = 1, .seed = 7};
  const SearchResult once = search_largest(SoftmaxNorm::kJacobian, options);
  const SearchResult again = search_largest(SoftmaxNorm::kJacobian, options);
  EXPECT_EQ(once.scores, again.scores);
  EXPECT_EQ(once.largest, again.largest);
  options.steps = 0;
  const SearchResult foot = search_largest(SoftmaxNorm::kJacobian, options);
  EXPECT_EQ(foot.evaluations, 8);
  EXPECT_GT(once.largest, foot.largest);
  options.seed = 8;
  EXPECT_NE(search_largest(SoftmaxNorm::kJacobian, options).scores,
            foot.scores);
}

TEST(SoftmaxSearch, TakesASingleToken) {
  const SearchOptions options{.tokens = 1};
  EXPECT_EQ(search_largest(SoftmaxNorm::kWeights, options).largest, 1);
  EXPECT_EQ(search_largest(SoftmaxNorm::kJacobian, options).largest, 0);
}

TEST(SoftmaxErrors, NameTheValue) {
  const auto refusal = test::message_of<std::invalid_argument>;
  EXPECT_EQ(refusal([] { softmax_row({}); }),
            "[theory] a row of softmax without scores");
  for (const double bad : {kNan, kInf, -kInf}) {
    EXPECT_NE(refusal([bad] {
                softmax_row_jacobian_sq(Row{0, bad});
              }).find("score 1 of a row"),
              std::string::npos);
  }
  EXPECT_EQ(refusal([] {
              softmax_jacobian_sq_by_differences(Row{1, 2, 3}, 2);
            }),
            "[theory] 3 scores are no matrix of 2 x 2");
  EXPECT_THROW(softmax_jacobian_sq_by_differences(Row{1, 2, 3, 1e9}, 2),
               std::invalid_argument);
  EXPECT_THROW(softmax_jacobian_sq_by_differences(Row{1, 2, 3, kNan}, 2),
               std::invalid_argument);
  EXPECT_THROW(softmax_jacobian_sq_by_differences({}, 0),
               std::invalid_argument);
  const auto search = [&refusal](const SearchOptions& o) {
    return refusal([&o] { search_largest(SoftmaxNorm::kWeights, o); });
  };
  EXPECT_EQ(search({.tokens = 0}),
            "[theory] search: tokens 0 is not in 1 .. 4096");
  EXPECT_EQ(search({.tokens = 4097}),
            "[theory] search: tokens 4097 is not in 1 .. 4096");
  EXPECT_EQ(search({.starts = 0}), "[theory] search: starts 0 < 1");
  EXPECT_EQ(search({.steps = -1}), "[theory] search: steps -1 < 0");
}

}  // namespace
}  // namespace polyattn::theory::softmax_bound_test
