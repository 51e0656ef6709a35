// Coefficients as a tensor, one row for all heads or one for each: output and
// gradients against plain torch ops.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "polyattn/torch/attention.h"
#include "torch/eager.h"
#include "torch/tensors.h"

namespace polyattn {
namespace coefficients_test {

using test::expect_near;
using test::expect_same_bits;
using test::leaf;
using test::Random;

using Options = AttentionOptions;
using Tensors = std::vector<at::Tensor>;

constexpr std::int64_t kH = 4, kN = 6, kM = 9, kD = 3, kE = 5;

// q, k, v, coefficients; [B, N, H, D] in memory if strided.
Tensors inputs(std::int64_t groups, std::vector<std::int64_t> size,
               bool strided = false) {
  const auto rows = [&](std::uint64_t seed, std::int64_t heads,
                        std::int64_t count, std::int64_t width) {
    at::Tensor t = Random(seed).normal({2, heads, count, width});
    if (strided) t = t.transpose(1, 2).contiguous().transpose(1, 2);
    return t.requires_grad_();
  };
  return {rows(1, kH, kN, kD), rows(2, groups, kM, kD), rows(3, groups, kM, kE),
          Random(4).normal(size).requires_grad_()};
}

Options options_for(const char* formula, const Tensors& t) {
  return Options()
      .activation(formula)
      .coefficients(t[3])
      .gqa(t[1].size(1) != kH)
      .mask(Random(5).bools({kH, kN, kM}, 0.8));
}

void expect_like_eager(const Tensors& t, const Options& options) {
  const at::Tensor d_o = Random(6).normal({2, kH, kN, kE});
  const at::Tensor got = attention(t[0], t[1], t[2], options);
  const at::Tensor want = test::eager_attention(t[0], t[1], t[2], options);
  expect_near("o", got, want);
  const Tensors found = test::gradients({got}, t, {d_o});
  const Tensors expected = test::gradients({want}, t, {d_o});
  const char* names[] = {"dq", "dk", "dv", "dc"};
  for (std::size_t i = 0; i < 4; ++i) {
    expect_near(names[i], found[i], expected[i]);
  }
}

TEST(Coefficients, EveryDivisorShapeAndDegree) {
  for (const char* formula : {"x", "x/sqrt(N)", "x^2/N", "x^4/sum"}) {
    for (const std::int64_t terms : {1, 2, 4, 9}) {
      for (const bool by_head : {false, true}) {
        for (const std::int64_t groups : {kH, kH / 2, std::int64_t{1}}) {
          SCOPED_TRACE(std::string(formula) + " terms " +
                       std::to_string(terms) + " groups " +
                       std::to_string(groups) + (by_head ? " by head" : ""));
          const std::vector<std::int64_t> all = {terms}, each = {kH, terms};
          const Tensors t =
              inputs(groups, by_head ? each : all, terms % 2 == 0);
          expect_like_eager(t, options_for(formula, t));
        }
      }
    }
  }
}

// Which of them want a gradient decides between kernels and composed
// definition under `sum`.
TEST(Coefficients, WithoutTheirGradientUnderSum) {
  Tensors t = inputs(2, {kH, 4});
  t[3] = t[3].detach();
  const Options options = options_for("x^3/sum", t);
  const Tensors three = {t[0], t[1], t[2]};
  const at::Tensor d_o = Random(6).normal({2, kH, kN, kE});
  const Tensors got =
      test::gradients({attention(t[0], t[1], t[2], options)}, three, {d_o});
  const Tensors want = test::gradients(
      {test::eager_attention(t[0], t[1], t[2], options)}, three, {d_o});
  for (std::size_t i = 0; i < 3; ++i) expect_near("gradient", got[i], want[i]);
}

TEST(Coefficients, ThoseOfTheFormulaGiveTheFormula) {
  const Tensors t = inputs(kH, {3});
  const at::Tensor c =
      at::tensor({1.0, 1.0, 0.5}, at::TensorOptions(at::kDouble));
  const auto run = [&](const Options& options) {
    return attention(t[0], t[1], t[2], options);
  };
  const at::Tensor want = run(Options().activation("1 + x + x^2/2"));
  expect_same_bits("o", run(Options().activation("x").coefficients(c)), want);
  expect_same_bits(
      "f32", run(Options().activation("x").coefficients(c.to(at::kFloat))),
      want);
  expect_same_bits(
      "by head", run(Options().activation("x").coefficients(c.expand({kH, 3}))),
      want);
}

TEST(Coefficients, NormsByHead) {
  const Tensors t = inputs(2, {kH, 3});
  for (const char* formula : {"x/sqrt(N)", "x/sum"}) {
    const Options options = options_for(formula, t);
    const auto [o, norms] = attention_with_norms(t[0], t[1], t[2], options);
    const at::Tensor a =
        test::eager_weights(test::eager_scores(t[0], t[1], options), options);
    expect_near("weight", norms.weight, a.square().sum({2, 3}).sqrt());
    EXPECT_FALSE(norms.weight.requires_grad());
  }
}

TEST(Coefficients, GradientHasTheirTypeAndSize) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kDouble}) {
    Tensors t = inputs(kH, {1, 3});
    const at::Tensor c = Random(4).normal({kH, 3}).to(type).requires_grad_();
    t[3] = c;
    attention(t[0], t[1], t[2], options_for("x", t)).sum().backward();
    EXPECT_EQ(c.grad().scalar_type(), type);
    EXPECT_EQ(c.grad().sizes(), c.sizes());
  }
}

// In a 16-bit type x^8 may be beyond what the type can hold, while its
// coefficient is small and the output is not.
TEST(Coefficients, GradientOfHighPowersInLowPrecision) {
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    const at::Tensor q = at::full({1, 1, 2, 1}, 5.0).to(type);
    const at::Tensor v = Random(1).normal({1, 1, 3, 2}).to(type);
    const at::Tensor c = leaf(at::full({9}, 1e-6, at::kFloat));
    const Options options =
        Options().activation("x").scale(1.0).coefficients(c);
    const at::Tensor d_o = at::full({1, 1, 2, 2}, 0.0078125).to(type);
    const at::Tensor k = at::ones({1, 1, 3, 1}).to(type);
    const at::Tensor got =
        test::gradients({attention(q, k, v, options)}, {c}, {d_o})[0];
    const at::Tensor want =
        test::gradients({test::eager_attention(q, k, v, options)}, {c},
                        {d_o.to(at::kDouble)})[0];
    // The outputs and their products with d_o are rounded to the type.
    const double unit = type == at::kHalf ? 0x1p-11 : 0x1p-8;
    expect_near("dc", got, want, 8 * unit);
  }
}

}  // namespace coefficients_test
}  // namespace polyattn
