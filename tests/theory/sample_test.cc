// Sampled norms against loops over the same queries and keys.
#include "theory/sample.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/thread_parallel.h"
#include "theory/softmax_bound.h"

namespace polyattn::theory::sample_test {
namespace {

using test::TaskOrder;
using test::ThreadParallel;

SampleRequest request(std::int64_t tokens, std::int64_t samples) {
  return {.tokens = tokens,
          .width = 5,
          .samples = samples,
          .seed = 9,
          .stream = Stream::kQueriesKeys,
          .cases = {{Activation::parse("x^3/sqrt(N)")},
                    {Activation::parse("x^2/sqrt(N)"), true},
                    {Activation::parse("softmax"), false, 4}}};
}

struct Norms {
  double weight_sq = 0, jacobian_sq = 0;
};

Norms plain_norms(const SampleRequest& r, const MatrixCase& c,
                  std::int64_t sample) {
  Random random({r.seed, r.stream, r.tokens, sample});
  const auto q = normal_floats(r.tokens * r.width, random);
  const auto k = normal_floats(r.tokens * r.width, random);
  const auto n = static_cast<std::size_t>(r.tokens);
  const auto d = static_cast<std::size_t>(r.width);
  Norms norms;
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<double> scores(c.causal ? i + 1 : n);
    for (std::size_t j = 0; j < scores.size(); ++j) {
      for (std::size_t l = 0; l < d; ++l) {
        scores[j] += static_cast<double>(q[i * d + l]) * k[j * d + l];
      }
      scores[j] *= c.temperature / std::sqrt(static_cast<double>(d));
    }
    if (c.activation.kind == ActivationKind::kSoftmax) {
      norms.weight_sq += softmax_row_sq(scores);
      norms.jacobian_sq += softmax_row_jacobian_sq(scores);
      continue;
    }
    const auto count = static_cast<double>(scores.size());
    const double scale = c.activation.row_scale(count);
    for (const double s : scores) {
      norms.weight_sq += std::pow(scale * c.activation.weight(s, count), 2);
      norms.jacobian_sq +=
          std::pow(scale * c.activation.weight_derivative(s, count), 2);
    }
  }
  return norms;
}

TEST(SampleNorms, AreThoseOfTheirMatrices) {
  // 600 rows of 7 fill more than one group.
  const SampleRequest r = request(7, 600);
  SerialParallel serial;
  const auto sampled = sample_norms(r, serial);
  ASSERT_EQ(sampled.size(), r.cases.size());
  for (std::size_t c = 0; c < r.cases.size(); ++c) {
    ASSERT_EQ(sampled[c].weight_sq.size(), 600U);
    for (const std::int64_t sample : {0, 1, 584, 585, 586, 599}) {
      const Norms plain = plain_norms(r, r.cases[c], sample);
      const auto at = static_cast<std::size_t>(sample);
      EXPECT_NEAR(sampled[c].weight_sq[at], plain.weight_sq,
                  2e-5 * plain.weight_sq);
      EXPECT_NEAR(sampled[c].jacobian_sq[at], plain.jacobian_sq,
                  2e-5 * plain.jacobian_sq);
    }
  }
}

TEST(SampleNorms, DoNotDependOnThreads) {
  for (const std::int64_t tokens : {16, 100, 4096}) {
    SampleRequest r = request(tokens, tokens == 4096 ? 1 : 300);
    if (tokens == 4096) r.cases.resize(1);
    ThreadParallel one(1), two(2, TaskOrder::kShuffled);
    const auto a = sample_norms(r, one);
    const auto b = sample_norms(r, two);
    for (std::size_t c = 0; c < a.size(); ++c) {
      EXPECT_EQ(a[c].weight_sq, b[c].weight_sq) << tokens;
      EXPECT_EQ(a[c].jacobian_sq, b[c].jacobian_sq) << tokens;
    }
  }
}

// The first samples of more are those of fewer.
TEST(SampleNorms, OfASampleDoNotDependOnTheOthers) {
  SerialParallel serial;
  const auto few = sample_norms(request(20, 30), serial);
  const auto many = sample_norms(request(20, 300), serial);
  for (std::size_t i = 0; i < 30; ++i) {
    EXPECT_EQ(few[0].weight_sq[i], many[0].weight_sq[i]);
  }
}

}  // namespace
}  // namespace polyattn::theory::sample_test
