// The norms of attention_with_norms against those of an explicit matrix and of
// its Jacobian, which torch differentiates entry by entry.
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <limits>
#include <string>
#include <vector>

#include "polyattn/torch/attention.h"
#include "torch/call.h"
#include "torch/composed.h"
#include "torch/eager.h"
#include "torch/tensors.h"

namespace polyattn {
namespace norms_test {

using test::expect_near;
using test::expect_same_bits;
using test::leaf;
using test::Random;

using Options = AttentionOptions;

// ||dA/dS||_F of each head. Heads do not depend on each other, so one entry of
// all heads is differentiated at once.
at::Tensor jacobian_norm(const test::EagerScores& scores,
                         const Options& options) {
  test::EagerScores own = scores;
  own.s = leaf(scores.s);
  const at::Tensor a = test::eager_weights(own, options);
  at::Tensor sum = at::zeros({a.size(0), a.size(1)}, at::kDouble);
  for (std::int64_t i = 0; i < a.size(2); ++i) {
    for (std::int64_t j = 0; j < a.size(3); ++j) {
      const at::Tensor entry = a.select(3, j).select(2, i);
      sum += test::gradients({entry}, {own.s}, {at::ones_like(entry)})[0]
                 .square()
                 .sum({2, 3});
    }
  }
  return sum.sqrt();
}

struct Inputs {
  at::Tensor q = Random(1).normal({2, 4, 5, 3});
  at::Tensor k = Random(2).normal({2, 2, 6, 3});
  at::Tensor v = Random(3).normal({2, 2, 6, 2});
};

void expect_right(const Options& options, const AttentionNorms& norms) {
  const Inputs in;
  const auto scores = test::eager_scores(in.q, in.k, options);
  expect_near("weight", norms.weight,
              test::eager_weights(scores, options).square().sum({2, 3}).sqrt());
  expect_near("jacobian", norms.jacobian, jacobian_norm(scores, options));
  expect_near("score", norms.max_abs_score,
              scores.s.abs().masked_fill(~scores.seen, 0).amax({2, 3}));
  EXPECT_EQ(norms.non_finite.scalar_type(), at::kLong);
  expect_same_bits("non-finite", norms.non_finite,
                   at::zeros({2, 4}, at::kLong));
}

void expect_right(const Options& options) {
  const Inputs in;
  expect_right(options, attention_with_norms(in.q, in.k, in.v, options).norms);
}

std::vector<Options> structures(const std::string& formula) {
  const Options base = Options().activation(formula).gqa(true);
  at::Tensor mask = Random(4).bools({2, 1, 5, 6}, 0.6);
  mask.select(2, 1).fill_(false);
  const at::Tensor bias = Random(5).normal({5, 6}).masked_fill(
      Random(6).bools({5, 6}, 0.2), -std::numeric_limits<double>::infinity());
  return {base, Options(base).causal(true), Options(base).mask(mask),
          Options(base).mask(bias).causal(Causal::kLast)};
}

class Norms : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Formula, Norms,
                         ::testing::ValuesIn(test::kEagerFormulas));

TEST_P(Norms, OfTheKernels) {
  for (Options& options : structures(GetParam())) {
    expect_right(options);
    if (options.mask() && options.mask()->is_floating_point()) {
      options.mask()->requires_grad_();
      expect_right(options);
    }
  }
}

TEST_P(Norms, AreThoseBeforeDropout) {
  for (const Options& options : structures(GetParam()))
    expect_right(Options(options).dropout(0.5));
}

TEST_P(Norms, OfTheComposedDefinition) {
  const Inputs in;
  for (const Options& options : structures(GetParam())) {
    const Call call = make_call(in.q, in.k, in.v, options);
    const at::Tensor norms = composed_norms(call, composed_attention(call));
    expect_right(
        options,
        {norms.select(2, 0).sqrt(), norms.select(2, 1).clamp_min(0).sqrt(),
         norms.select(2, 2), norms.select(2, 3).to(at::kLong)});
  }
}

// A row of one key has A = 1 or -1 whatever its score is: the Jacobian of
// `sum` is zero, which rounding must not turn into the root of a negative. The
// terms that cancel are squares of w'/w, at most 4/min(|s|, 1) here; sixteen
// roundings of their sum are left under the root.
TEST(NormsOfOneKey, JacobianOfSumIsZero) {
  const at::Tensor q = Random(7).normal({8, 4, 9, 3}, at::kFloat);
  const at::Tensor k = Random(8).normal({8, 4, 1, 3}, at::kFloat);
  const at::Tensor s = test::eager_scores(q, k, Options()).s.abs();
  const at::Tensor terms = (4 / s.clamp_max(1)).square().sum({2, 3});
  for (const char* formula : {"softmax", "x^3/sum", "x^4/sum", "sigmoid/sum"}) {
    for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
      SCOPED_TRACE(formula);
      const auto norms =
          attention_with_norms(q.to(type), k.to(type), k.to(type),
                               Options().activation(formula))
              .norms;
      const double unit = type == at::kDouble ? 0x1p-53 : 0x1p-24;
      expect_near("weight", norms.weight, at::full({8, 4}, 3.0), 16 * unit);
      EXPECT_TRUE(
          norms.jacobian.le((16 * unit * terms).sqrt()).all().item<bool>())
          << norms.jacobian;
    }
  }
}

TEST(NormShapes, AreTheLeadingDimensions) {
  const at::Tensor t = Random(9).normal({2, 3, 2, 4, 3});
  const auto shape = [](const at::Tensor& q, const Options& options) {
    const auto [o, norms] = attention_with_norms(q, q, q, options);
    EXPECT_EQ(o.sizes(), q.sizes());
    for (const at::Tensor& each :
         {norms.weight, norms.jacobian, norms.max_abs_score}) {
      EXPECT_EQ(each.scalar_type(), at::kDouble);
      EXPECT_EQ(each.sizes(), norms.non_finite.sizes());
    }
    return norms.weight.sizes().vec();
  };
  using Sizes = std::vector<std::int64_t>;
  for (const double dropout : {0.0, 0.5}) {
    const Options o = Options().dropout(dropout);
    EXPECT_EQ(shape(t, o), Sizes({2, 3, 2}));
    EXPECT_EQ(shape(t[0], o), Sizes({3, 2}));
    EXPECT_EQ(shape(t[0][0], o), Sizes({2}));
    EXPECT_EQ(shape(t[0][0][0], o), Sizes({}));
  }
}

// Each in its place, where the layout of q is not that of the batch.
TEST(NormShapes, KeepTheirOrder) {
  const at::Tensor q = Random(10).normal({2, 3, 5, 3, 4}).transpose(2, 3);
  const auto all = attention_with_norms(q, q, q).norms;
  for (std::int64_t a = 0; a < 2; ++a) {
    for (std::int64_t h = 0; h < 3; ++h) {
      const at::Tensor own = q[a][1][h];
      const auto one = attention_with_norms(own, own, own).norms;
      expect_same_bits("weight", all.weight[a][1][h], one.weight);
      expect_same_bits("jacobian", all.jacobian[a][1][h], one.jacobian);
      expect_same_bits("score", all.max_abs_score[a][1][h], one.max_abs_score);
    }
  }
}

TEST(NormGradients, NoneAndTheOutputKeepsItsOwn) {
  const Inputs in;
  const at::Tensor q = leaf(in.q);
  for (const double dropout : {0.0, 0.5}) {
    torch::manual_seed(1);
    const auto [o, norms] = attention_with_norms(
        q, in.k, in.v, Options().gqa(true).dropout(dropout));
    EXPECT_FALSE(norms.weight.requires_grad());
    EXPECT_FALSE(norms.jacobian.requires_grad());
    EXPECT_FALSE(norms.max_abs_score.requires_grad());
    torch::manual_seed(1);
    const at::Tensor plain =
        attention(q, in.k, in.v, Options().gqa(true).dropout(dropout));
    expect_same_bits("o", o, plain);
    const at::Tensor one = at::ones_like(o);
    expect_same_bits("dq", test::gradients({o}, {q}, {one})[0],
                     test::gradients({plain}, {q}, {one})[0]);
  }
}

TEST(NonFiniteOutputs, AreCounted) {
  Inputs in;
  in.v[1][0][2][1] = std::numeric_limits<double>::quiet_NaN();
  in.v[0][1][0][0] = std::numeric_limits<double>::infinity();
  for (const double dropout : {0.0, 1e-12}) {
    const auto norms =
        attention_with_norms(in.q, in.k, in.v,
                             Options().gqa(true).dropout(dropout))
            .norms;
    const at::Tensor want = at::zeros({2, 4}, at::kLong);
    want[1].narrow(0, 0, 2).fill_(5);  // one column of each of five rows
    want[0].narrow(0, 2, 2).fill_(5);
    expect_same_bits("non-finite", norms.non_finite, want);
  }
}

}  // namespace norms_test
}  // namespace polyattn
