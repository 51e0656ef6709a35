// Any number of leading dimensions, broadcast or not, against the call with
// four; sizes of zero and one; and masks of every shape.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <vector>

#include "polyattn/torch/attention.h"
#include "torch/eager.h"
#include "torch/tensors.h"

namespace polyattn {
namespace shapes_test {

using test::expect_near;
using test::expect_same_bits;
using test::Random;

using Options = AttentionOptions;
using Sizes = std::vector<std::int64_t>;

struct Shapes {
  Sizes q, k, v;         // as handed to the op
  Sizes full;            // the output's, before N and E
  Sizes four_q, four_k;  // [B, H] of the call with four dimensions
};

constexpr std::int64_t kN = 5, kM = 7, kD = 3, kE = 4;

at::Tensor normal(Sizes leading, std::int64_t rows, std::int64_t width,
                  std::uint64_t seed) {
  leading.insert(leading.end(), {rows, width});
  return Random(seed).normal(leading).requires_grad_();
}

// As four dimensions, repeated in memory where it is broadcast.
at::Tensor four(const at::Tensor& t, Sizes leading, const Sizes& four_leading) {
  leading.insert(leading.end(), {t.size(-2), t.size(-1)});
  return t.expand(leading).reshape(
      {four_leading[0], four_leading[1], t.size(-2), t.size(-1)});
}

Sizes key_leading(const Shapes& s) {
  Sizes leading = s.full;
  if (!leading.empty()) leading.back() = s.four_k[1];
  return leading;
}

void expect_like_four(const Shapes& s, const Options& options) {
  const at::Tensor q = normal(s.q, kN, kD, 1), k = normal(s.k, kM, kD, 2),
                   v = normal(s.v, kM, kE, 3);
  const at::Tensor got = attention(q, k, v, options);
  Sizes size = s.full;
  size.insert(size.end(), {kN, kE});
  ASSERT_EQ(got.sizes(), at::IntArrayRef(size));
  const Sizes keys = key_leading(s);
  const at::Tensor want =
      attention(four(q, s.full, s.four_q), four(k, keys, s.four_k),
                four(v, keys, s.four_k), options)
          .reshape(size);
  expect_same_bits("o", got, want);
  const at::Tensor d_o = Random(4).normal(size);
  const auto got_gradients = test::gradients({got}, {q, k, v}, {d_o});
  const auto gradients = test::gradients({want}, {q, k, v}, {d_o});
  for (std::size_t i = 0; i < 3; ++i) {
    expect_same_bits("gradient", got_gradients[i], gradients[i]);
  }
}

TEST(LeadingDimensions, FromTwoToSixAndBroadcast) {
  const std::vector<Shapes> cases = {
      {{}, {}, {}, {}, {1, 1}, {1, 1}},
      {{3}, {3}, {3}, {3}, {1, 3}, {1, 3}},
      {{3}, {1}, {3}, {3}, {1, 3}, {1, 3}},
      {{}, {3}, {}, {3}, {1, 3}, {1, 3}},
      {{2, 3}, {2, 3}, {2, 3}, {2, 3}, {2, 3}, {2, 3}},
      {{2, 3}, {3}, {2, 1}, {2, 3}, {2, 3}, {2, 3}},
      {{3}, {2, 3}, {}, {2, 3}, {2, 3}, {2, 3}},
      {{2, 2, 3}, {2, 2, 3}, {2, 2, 3}, {2, 2, 3}, {4, 3}, {4, 3}},
      {{2, 1, 3}, {4, 3}, {2, 1, 1, 3}, {2, 2, 4, 3}, {16, 3}, {16, 3}},
      {{2, 1, 2, 2, 3}, {3}, {1, 3}, {2, 1, 2, 2, 3}, {8, 3}, {8, 3}},
  };
  for (const Shapes& s : cases) {
    SCOPED_TRACE(::testing::PrintToString(s.full));
    expect_like_four(s, Options());
    expect_like_four(s, Options().activation("x^3/sqrt(N)").causal(true));
  }
}

TEST(LeadingDimensions, GroupedHeads) {
  const Options options = Options().gqa(true).activation("1 + x + x^2/2");
  expect_like_four({{4}, {2}, {2}, {4}, {1, 4}, {1, 2}}, options);
  expect_like_four({{4}, {}, {1}, {4}, {1, 4}, {1, 1}}, options);
  expect_like_four({{3, 4}, {2}, {1, 2}, {3, 4}, {3, 4}, {3, 2}}, options);
  expect_like_four({{2, 1, 4}, {3, 2}, {2, 3, 2}, {2, 3, 4}, {6, 4}, {6, 2}},
                   options);
}

// Masks that hide all of row 1, of every shape that broadcasts.
TEST(MaskShapes, AreBroadcast) {
  const at::Tensor q = normal({2, 3}, kN, kD, 1), k = normal({2, 3}, kM, kD, 2);
  const at::Tensor v = normal({2, 3}, kM, kE, 3);
  const std::vector<Sizes> sizes = {{},
                                    {kM},
                                    {1},
                                    {kN, kM},
                                    {kN, 1},
                                    {1, kM},
                                    {3, kN, kM},
                                    {3, 1, 1},
                                    {1, kN, kM},
                                    {2, 3, kN, kM},
                                    {2, 1, 1, kM},
                                    {2, 3, kN, 1},
                                    {1, 3, 1, kM},
                                    {2, 1, kN, kM},
                                    {1, 1, 1, 1}};
  for (const Sizes& size : sizes) {
    SCOPED_TRACE(::testing::PrintToString(size));
    at::Tensor mask = Random(5).bools(size, 0.7);
    if (size.size() >= 2 && size[size.size() - 2] == kN) {
      mask.select(-2, 1).fill_(false);
    }
    at::Tensor bias = Random(6).normal(size).masked_fill(~mask, -INFINITY);
    for (const at::Tensor& extra : {mask, bias, bias.to(at::kFloat)}) {
      const Options options =
          Options().activation("x^3/sqrt(N)").mask(extra).causal(true);
      expect_near("o", attention(q, k, v, options),
                  test::eager_attention(q, k, v, options));
    }
  }
}

TEST(MaskShapes, WithFewerAndMoreDimensions) {
  const at::Tensor q = normal({}, kN, kD, 1), k = normal({}, kM, kD, 2),
                   v = normal({}, kM, kE, 3);
  const at::Tensor mask = Random(7).bools({kN, kM}, 0.6);
  const auto lift = [](const at::Tensor& t) {
    return t.view({1, 1, t.size(0), t.size(1)});
  };
  const at::Tensor want = test::eager_attention(lift(q), lift(k), lift(v),
                                                Options().mask(mask))[0][0];
  expect_near("2", attention(q, k, v, Options().mask(mask)), want);
  expect_near("1 in 3", attention(q, k, v, Options().mask(mask.unsqueeze(0))),
              want);

  const at::Tensor wide = normal({2, 3, 2}, kN, kD, 4);
  const Sizes kShapes[] = {{2, 3, 2, kN, kM},
                           {3, 1, 1, kM},
                           {2, 1, 1, kN, 1},
                           {2, 1, kM},
                           {1, 1, 1, 1, 1}};
  for (const Sizes& size : kShapes) {
    SCOPED_TRACE(::testing::PrintToString(size));
    const at::Tensor own = Random(8).bools(size, 0.6);
    const at::Tensor full =
        own.expand({2, 3, 2, kN, kM}).reshape({6, 2, kN, kM});
    const at::Tensor expected =
        test::eager_attention(
            wide.reshape({6, 2, kN, kD}), lift(k).expand({6, 2, kM, kD}),
            lift(v).expand({6, 2, kM, kE}), Options().mask(full))
            .reshape({2, 3, 2, kN, kE});
    expect_near("5", attention(wide, k, v, Options().mask(own)), expected);
  }
}

// N, M, D, E, B or H of zero: zeros, or nothing, and gradients of that size.
TEST(EmptyTensors, GiveZerosOrNothing) {
  for (std::size_t zero = 0; zero < 6; ++zero) {
    for (const char* formula :
         {"softmax", "x^4/sum", "x^3/sqrt(N)", "sigmoid"}) {
      SCOPED_TRACE(std::to_string(zero) + formula);
      Sizes s = {2, 3, kN, kM, kD, kE};
      s[zero] = 0;
      const at::Tensor q = Random(1).normal({s[0], s[1], s[2], s[4]});
      const at::Tensor k = Random(2).normal({s[0], s[1], s[3], s[4]});
      const at::Tensor v = Random(3).normal({s[0], s[1], s[3], s[5]});
      q.requires_grad_(), k.requires_grad_(), v.requires_grad_();
      const auto [o, norms] =
          attention_with_norms(q, k, v, Options().activation(formula));
      ASSERT_EQ(o.sizes(), at::IntArrayRef({s[0], s[1], s[2], s[5]}));
      EXPECT_EQ(norms.weight.sizes(), at::IntArrayRef({s[0], s[1]}));
      o.sum().backward();
      EXPECT_EQ(q.grad().sizes(), q.sizes());
      EXPECT_EQ(k.grad().sizes(), k.sizes());
      EXPECT_EQ(v.grad().sizes(), v.sizes());
      if (zero == 3) {
        expect_same_bits("o", o, at::zeros_like(o));
        expect_same_bits("dq", q.grad(), at::zeros_like(q));
        expect_same_bits("norm", norms.weight, at::zeros_like(norms.weight));
      }
      if (zero == 2) {
        expect_same_bits("dk", k.grad(), at::zeros_like(k));
        expect_same_bits("dv", v.grad(), at::zeros_like(v));
      }
    }
  }
}

// No query heads, but key heads: nothing to compute, and no gradient for them.
TEST(EmptyTensors, NoQueryHeadsForSomeKeyHeads) {
  const at::Tensor q = normal({1, 0}, kN, kD, 1), k = normal({1, 2}, kM, kD, 2),
                   v = normal({1, 2}, kM, kE, 3);
  const at::Tensor o = attention(q, k, v, Options().gqa(true));
  EXPECT_EQ(o.sizes(), at::IntArrayRef({1, 0, kN, kE}));
  o.sum().backward();
  expect_same_bits("dk", k.grad(), at::zeros_like(k));
  expect_same_bits("dv", v.grad(), at::zeros_like(v));
}

TEST(EmptyTensors, NoHeadsForCoefficientsByHead) {
  const at::Tensor q = normal({2, 0}, kN, kD, 1);
  const at::Tensor c = at::ones({0, 3}, at::kDouble).requires_grad_();
  const at::Tensor o =
      attention(q, q, q, Options().activation("x").coefficients(c));
  EXPECT_EQ(o.sizes(), q.sizes());
  o.sum().backward();
  EXPECT_EQ(c.grad().sizes(), c.sizes());
}

}  // namespace shapes_test
}  // namespace polyattn
