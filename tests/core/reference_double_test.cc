// The twin of the double backward against finite differences of that of
// backward.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/double_cases.h"
#include "core/random_inputs.h"

namespace polyattn::test {
namespace {

constexpr double kEps = std::numeric_limits<double>::epsilon();

// Every feature, small enough for four evaluations per input element.
std::vector<Case> small_cases() {
  const Case base{.n = 3, .m = 4, .d = 2, .e = 3, .dtype = DType::kF64};
  std::vector<Case> list(8, base);
  list[1].causal = Causal::kFirst, list[1].bias = Extra::kFull;
  list[2].mask = Extra::kFull, list[2].strided = true, list[2].scale = -0.75;
  list[3].batch = 2, list[3].heads = 4, list[3].kv_heads = 2;
  list[3].bias = Extra::kHeads, list[3].mask = Extra::kPadding;
  list[4].q_lengths = {2, 0, 1, 3}, list[4].k_lengths = {3, 2, 0, 4};
  list[4].causal = Causal::kLast, list[4].bias = Extra::kQueries;
  list[5].batch = list[5].heads = 2, list[5].bias = Extra::kOne;
  list[6].batch = 4, list[6].bias = list[6].mask = Extra::kCycle;
  list[7] = list[3], list[7].dropout = 0.4;
  return list;
}

double product(const Buffer& a, const ConstTensor& b) {
  double sum = 0;
  for_each_index(b.size,
                 [&](const Extents& x) { sum += at(a.tensor, x) * at(b, x); });
  return sum;
}

// L as polyattn/double_backward.h has it.
double loss(DoubleInstance& twin) {
  const Instance& instance = twin.instance;
  Outputs out = instance.outputs(DType::kF64);
  reference_backward(instance.inputs(), instance.config(), instance.d_o.tensor,
                     out.gradients());
  const AttentionDoubleInputs u = twin.inputs();
  double sum =
      product(out.dq, *u.uq) + product(out.dk, *u.uk) + product(out.dv, *u.uv);
  if (u.u_bias) sum += product(out.d_bias, *u.u_bias);
  return sum;
}

// The central difference with step h is off by c h^2 plus rounding, kEps |L|/h
// times the terms of the loss. Steps h and 2h differ by 3 c h^2, which measures
// the first without knowing c.
void expect_gradient(DoubleInstance& twin, Buffer& x, const ConstTensor& dx) {
  constexpr double kStep = 0x1p-14, kTerms = 256;
  for_each_index(x.tensor.size, [&](const Extents& index) {
    const double value = at(x.tensor, index);
    if (!std::isfinite(value)) return;
    double largest = 1;
    const auto slope = [&](double h) {
      x.set(index, value + h);
      const double up = loss(twin);
      x.set(index, value - h);
      const double down = loss(twin);
      x.set(index, value);
      largest = std::max({largest, std::fabs(up), std::fabs(down)});
      return (up - down) / (2 * h);
    };
    const double once = slope(kStep), twice = slope(2 * kStep);
    const double tolerance =
        std::fabs(twice - once) + kTerms * kEps * largest / kStep;
    EXPECT_NEAR(at(dx, index), once, tolerance);
    // Else the test above could not fail.
    EXPECT_LT(tolerance, 1e-3 * (1 + std::fabs(once)));
  });
}

TEST(ReferenceDouble, GradientsAreFiniteDifferences) {
  for (Case c : small_cases()) {
    for (const char* formula :
         {"softmax", "x^3/sqrt(N)", "1 + x + x^2/2", "x^3/sum", "sigmoid",
          "2*sigmoid(x)/sqrt(N)", "relu^3/N", "-3*relu^3/sum", "sigmoid/sum"}) {
      c.formula = formula;
      SCOPED_TRACE(::testing::PrintToString(c));
      DoubleInstance twin(c);
      const DoubleOutputs out = twin.reference();
      Instance& instance = twin.instance;
      expect_gradient(twin, instance.d_o, out.d_o.tensor);
      expect_gradient(twin, instance.q, out.dq.tensor);
      expect_gradient(twin, instance.k, out.dk.tensor);
      expect_gradient(twin, instance.v, out.dv.tensor);
      if (c.bias != Extra::kAbsent)
        expect_gradient(twin, instance.bias, out.d_bias.tensor);
    }
  }
}

// relu^2 bends at 0: by hand, with q = 1, k = (2, -1), v = (3, 5).
TEST(ReferenceDouble, ASquareOfReluByHand) {
  const double q = 1, k[] = {2, -1}, v[] = {3, 5}, d_o = 7;
  const double uq = 0.5, uk[] = {-1, 4}, uv[] = {2, 6};
  AttentionInputs in;
  in.q = view(&q, {1, 1, 1, 1});
  in.k = view(k, {1, 1, 2, 1});
  in.v = view(v, {1, 1, 2, 1});
  AttentionConfig config;
  config.activation = Activation::parse("relu^2");
  const RowState row{0, 1};
  double d_o_out = kNaN, dq = kNaN, dk[2] = {kNaN, kNaN}, dv[2] = {kNaN, kNaN};
  reference_double_backward(in, config,
                            {.rows = {&row, 1},
                             .d_o = view(&d_o, {1, 1, 1, 1}),
                             .uq = view(&uq, {1, 1, 1, 1}),
                             .uk = view(uk, {1, 1, 2, 1}),
                             .uv = view(uv, {1, 1, 2, 1})},
                            {.d_o = view(&d_o_out, {1, 1, 1, 1}),
                             .dq = view(&dq, {1, 1, 1, 1}),
                             .dk = view(dk, {1, 1, 2, 1}),
                             .dv = view(dv, {1, 1, 2, 1})});
  // Of the first key: s = 2, t = 0.5 * 2 + 1 * -1 = 0, p = 21, w = 14, so
  // ds = 2 * 2 * 21 = 84, g = 2 * 0 * 21 + 4 * 14 = 56. The second has s < 0.
  EXPECT_EQ(d_o_out, 0 * 3 + 4 * 2);
  EXPECT_EQ(dq, 56 * 2 + 84 * -1);
  EXPECT_EQ(dk[0], 56 * 1 + 84 * 0.5);
  EXPECT_EQ(dk[1], 0);
  EXPECT_EQ(dv[0], 0);
  EXPECT_EQ(dv[1], 0);
}

}  // namespace
}  // namespace polyattn::test
