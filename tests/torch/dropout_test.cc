// Dropout. With v the identity the output is the dropped weights themselves, so
// every draw can be looked at.
//
// How often a right op would fail. The bounds on means and counts are
// Hoeffding's, which hold for every sample size: of x_1 .. x_n independent,
// each within a range r_i, the sum is further than t from its expectation with
// probability at most 2 exp(-2 t^2 / sum r_i^2). t is chosen such that all
// comparisons of a test together fail once in 10^9 seeds; and the seeds are
// fixed.
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <string>
#include <vector>

#include "polyattn/torch/attention.h"
#include "torch/eager.h"
#include "torch/tensors.h"

namespace polyattn {
namespace dropout_test {

using test::expect_near;
using test::expect_same_bits;
using test::leaf;
using test::Random;

using Options = AttentionOptions;

constexpr std::int64_t kN = 40, kM = 50;

// t for one comparison of `comparisons`, the squares of the ranges adding up to
// `ranges`.
double hoeffding(double ranges, std::int64_t comparisons) {
  const double each = 1e-9 / static_cast<double>(comparisons);
  return std::sqrt(ranges * std::log(2 / each) / 2);
}

struct Inputs {
  explicit Inputs(at::ScalarType type = at::kDouble)
      : q(Random(1).normal({2, 2, kN, 4}, type)),
        k(Random(2).normal({2, 2, kM, 4}, type)),
        v(at::eye(kM, at::kDouble).to(type).expand({2, 2, kM, kM})) {}
  at::Tensor weights(const Options& options) const {
    return test::eager_weights(test::eager_scores(q, k, options), options);
  }
  at::Tensor q, k, v;
};

Options options_for(const std::string& formula, double dropout) {
  return Options().activation(formula).dropout(dropout);
}

TEST(Dropout, WeightsAreZeroOrDividedByWhatIsKept) {
  for (const std::string& formula : test::kEagerFormulas) {
    for (const double p : {0.1, 0.5, 0.9}) {
      SCOPED_TRACE(formula + " " + std::to_string(p));
      torch::manual_seed(5);
      const Inputs in;
      const Options options = options_for(formula, p);
      const at::Tensor got = attention(in.q, in.k, in.v, options);
      const at::Tensor weights = in.weights(options);
      expect_near("kept", got, (weights / (1 - p)).masked_fill(got.eq(0), 0));
      // Weights that are zero anyway say nothing.
      const at::Tensor drawn = weights.ne(0);
      const auto count = drawn.sum().item<double>();
      const auto kept = got.ne(0).sum().item<double>();
      ASSERT_GT(count, 1000);
      EXPECT_NEAR(kept, (1 - p) * count, hoeffding(count, 27));
    }
  }
}

// Each element of the output over many draws. The ranges are A_ij |v_j| / (1 -
// p).
TEST(Dropout, MeanIsTheOutputWithoutDropout) {
  constexpr int kDraws = 2000;
  constexpr double kP = 0.3;
  Random random(6);
  const at::Tensor q = random.normal({1, 2, 5, 3});
  const at::Tensor k = random.normal({1, 2, 6, 3});
  const at::Tensor v = random.normal({1, 2, 6, 4}) + 2;
  const Options options = options_for("softmax", kP);
  torch::manual_seed(7);
  at::Tensor sum = at::zeros({1, 2, 5, 4}, at::kDouble);
  for (int i = 0; i < kDraws; ++i) sum += attention(q, k, v, options);
  const at::Tensor want = attention(q, k, v);
  const at::Tensor a =
      test::eager_weights(test::eager_scores(q, k, options), options);
  const at::Tensor ranges =
      at::matmul(a.square(), v.square()) * kDraws / std::pow(1 - kP, 2);
  const at::Tensor off = (sum - kDraws * want).abs();
  const at::Tensor allowed = ranges.sqrt() * hoeffding(1, off.numel());
  EXPECT_TRUE(off.le(allowed).all().item<bool>())
      << (off / allowed).max().item<double>();
  // Would a missing 1/(1 - p) be seen?
  EXPECT_TRUE(allowed.lt(kP / 2 * kDraws * want.abs()).all().item<bool>());
}

TEST(Dropout, DrawsAreIndependentBetweenRowsAndHeads) {
  torch::manual_seed(8);
  const Inputs in;
  const at::Tensor kept =
      attention(in.q, in.k, in.v, options_for("sigmoid", 0.5)).ne(0);
  const at::Tensor rows = kept.reshape({-1, kM}).to(at::kDouble);
  // Two rows agree in each key with probability 1/2.
  const at::Tensor agree =
      at::matmul(rows, rows.t()) + at::matmul(1 - rows, (1 - rows).t());
  const std::int64_t count = rows.size(0);
  const at::Tensor off = (agree - kM / 2.0).abs().triu(1);
  EXPECT_LE(off.max().item<double>(), hoeffding(kM, count * (count - 1) / 2));
}

TEST(Dropout, IsReproducible) {
  const Inputs in;
  const auto run = [&] {
    return attention(in.q, in.k, in.v, options_for("x^3/sqrt(N)", 0.5));
  };
  torch::manual_seed(9);
  const at::Tensor first = run(), second = run();
  EXPECT_FALSE(at::equal(first, second));
  torch::manual_seed(9);
  expect_same_bits("first", run(), first);
  expect_same_bits("second", run(), second);
}

TEST(Dropout, ZeroIsNone) {
  const Inputs in(at::kFloat);
  for (const std::string& formula : test::kEagerFormulas) {
    torch::manual_seed(10);
    const at::Tensor state = at::rand({1});
    torch::manual_seed(10);
    expect_same_bits(
        "o", attention(in.q, in.k, in.v, options_for(formula, 0)),
        attention(in.q, in.k, in.v, Options().activation(formula)));
    // and nothing was drawn
    expect_same_bits("generator", at::rand({1}), state);
  }
}

// With the weights that were dropped, which v shows, as constants.
TEST(Dropout, GradientIsThatOfTheSameDraw) {
  constexpr double kP = 0.4;
  for (const std::string& formula : test::kEagerFormulas) {
    SCOPED_TRACE(formula);
    const Inputs in;
    const std::vector<at::Tensor> t = {leaf(in.q), leaf(in.k), leaf(in.v)};
    const Options options = options_for(formula, kP);
    torch::manual_seed(11);
    const at::Tensor o = attention(t[0], t[1], t[2], options);
    const at::Tensor mask = o.detach().ne(0).to(at::kDouble) / (1 - kP);
    const at::Tensor a =
        test::eager_weights(test::eager_scores(t[0], t[1], options), options);
    const at::Tensor want = at::matmul(a * mask, t[2]);
    const at::Tensor d_o = Random(12).normal(o.sizes());
    const auto got_gradients = test::gradients({o}, t, {d_o});
    const auto gradients = test::gradients({want}, t, {d_o});
    expect_near("o", o, want);
    for (std::size_t i = 0; i < 3; ++i) {
      expect_near("gradient", got_gradients[i], gradients[i]);
    }
  }
}

// The derivatives of the gradients, too, and by the coefficients, of which each
// head may have its own.
TEST(Dropout, HigherDerivativesAreThoseOfTheSameDraw) {
  constexpr double kP = 0.4;
  for (const std::vector<std::int64_t>& size :
       std::vector<std::vector<std::int64_t>>{{3}, {2, 3}}) {
    const Inputs in;
    const std::vector<at::Tensor> t = {leaf(in.q), leaf(in.k), leaf(in.v),
                                       leaf(Random(13).normal(size))};
    const Options options = options_for("1 + x + x^2/2", kP).coefficients(t[3]);
    torch::manual_seed(14);
    const at::Tensor o = attention(t[0], t[1], t[2], options);
    const at::Tensor kept = o.detach().ne(0).to(at::kDouble) / (1 - kP);
    const at::Tensor a =
        test::eager_weights(test::eager_scores(t[0], t[1], options), options);
    const at::Tensor want = at::matmul(a * kept, t[2]);
    const at::Tensor d_o = leaf(Random(12).normal(o.sizes()));
    std::vector<at::Tensor> by = t, weights;
    by.push_back(d_o);
    for (const at::Tensor& each : t) {
      weights.push_back(Random(15).normal(each.sizes()));
    }
    const auto first = test::gradients({o}, t, {d_o}, true);
    const auto want_first = test::gradients({want}, t, {d_o}, true);
    const auto second = test::gradients(first, by, weights);
    const auto want_second = test::gradients(want_first, by, weights);
    for (std::size_t i = 0; i < t.size(); ++i) {
      expect_near("first", first[i], want_first[i]);
    }
    for (std::size_t i = 0; i < by.size(); ++i) {
      expect_near("second", second[i], want_second[i]);
    }
  }
}

TEST(Dropout, KeepsTheSameWhetherHeadsAreComputedApart) {
  const Inputs in;
  const at::Tensor c = Random(13).normal({3});
  const auto run = [&](const at::Tensor& coefficients) {
    torch::manual_seed(16);
    return attention(in.q, in.k, in.v,
                     options_for("x^2", 0.5).coefficients(coefficients));
  };
  expect_same_bits("o", run(c.expand({2, 3})), run(c));
}

TEST(Dropout, KeepsTheTypeAndHidesTheSameKeys) {
  for (const at::ScalarType type :
       {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    const Inputs in(type);
    const at::Tensor o =
        attention(in.q, in.k, in.v, options_for("sigmoid", 0.3).causal(true));
    EXPECT_EQ(o.scalar_type(), type);
    const at::Tensor wide = o.to(at::kDouble);
    EXPECT_EQ(wide.triu(1).abs().sum().item<double>(), 0);
    EXPECT_GT(wide.tril().abs().sum().item<double>(), 0);
  }
}

}  // namespace dropout_test
}  // namespace polyattn
