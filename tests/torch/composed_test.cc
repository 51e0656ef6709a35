// The composed definition, which stands in where no kernel does, against the
// kernels and against plain torch ops: outputs, gradients, norms.
#include "torch/composed.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "core/random_inputs.h"
#include "torch/call.h"
#include "torch/eager.h"
#include "torch/op_cases.h"
#include "torch/tensors.h"

namespace polyattn {
namespace composed_test {

using test::Case;
using test::expect_near;
using test::Instance;
using test::tensor_of;

using Options = AttentionOptions;
using Tensors = std::vector<at::Tensor>;

struct Inputs {
  explicit Inputs(const Instance& instance)
      : all{tensor_of(instance.q), tensor_of(instance.k),
            tensor_of(instance.v)},
        d_o(tensor_of(instance.d_o)) {
    for (at::Tensor& t : all) t.requires_grad_();
  }
  Call call(const Options& options) const {
    return make_call(all[0], all[1], all[2], options);
  }
  at::Tensor op(const Options& options) const {
    return attention(all[0], all[1], all[2], options);
  }
  at::Tensor eager(const Options& options) const {
    return test::eager_attention(all[0], all[1], all[2], options);
  }
  Tensors gradients_of(const at::Tensor& o) const {
    return test::gradients({o}, all, {d_o.to(o.scalar_type())});
  }

  Tensors all;
  at::Tensor d_o;
};

void expect_gradients_near(const Tensors& got, const Tensors& want,
                           double relative = test::kF64Close) {
  const char* names[] = {"dq", "dk", "dv"};
  for (std::size_t i = 0; i < 3; ++i) {
    expect_near(names[i], got[i], want[i], relative);
  }
}

void expect_right(const Case& c) {
  SCOPED_TRACE(::testing::PrintToString(c));
  Instance instance(c);
  const Options options = test::options_of(c, instance);
  const Inputs in(instance);
  const at::Tensor composed = composed_attention(in.call(options));
  const at::Tensor fused = in.op(options), eager = in.eager(options);
  expect_near("composed", composed, eager);
  expect_near("fused", fused, composed);
  const Tensors gradients = in.gradients_of(composed);
  expect_gradients_near(gradients, in.gradients_of(eager));
  expect_gradients_near(in.gradients_of(fused), gradients);
}

class Composed : public ::testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Formula, Composed,
                         ::testing::Range(0, test::kEagerFormulaCount));

TEST_P(Composed, AgreesWithKernelsAndEagerTorch) {
  for (Case c : test::op_cases(GetParam(), 2)) {
    c.dtype = c.compute = DType::kF64;
    expect_right(c);
  }
}

TEST_P(Composed, NormsAgreeWithKernels) {
  for (Case c : test::op_cases(GetParam(), 1)) {
    c.dtype = c.compute = DType::kF64;
    SCOPED_TRACE(::testing::PrintToString(c));
    Instance instance(c);
    const Options options = test::options_of(c, instance);
    const Inputs in(instance);
    const Call call = in.call(options);
    const at::Tensor got = composed_norms(call, composed_attention(call));
    const auto [o, norms] =
        attention_with_norms(in.all[0], in.all[1], in.all[2], options);
    const at::Tensor want =
        at::stack({norms.weight.square(), norms.jacobian.square(),
                   norms.max_abs_score, norms.non_finite.to(at::kDouble)},
                  2);
    expect_near("norms", got, want);
  }
}

// It computes in f32, so its error is that of f32: sums of 20 products,
// amplified at most a hundredfold, and the rounding to the type at the end.
TEST_P(Composed, LowPrecision) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    Case c = test::op_case(test::kEagerFormulas[GetParam()], 0, 2);
    c.n = 9, c.m = 20, c.d = 8, c.e = 5;
    c.dtype = dtype;
    SCOPED_TRACE(::testing::PrintToString(c));
    Instance instance(c);
    const Options options = test::options_of(c, instance);
    const Inputs in(instance);
    const at::Tensor composed = composed_attention(in.call(options));
    EXPECT_EQ(composed.scalar_type(), test::scalar_type(dtype));
    const double storage = dtype == DType::kBF16  ? 0x1p-9
                           : dtype == DType::kF16 ? 0x1p-12
                                                  : 0;
    const double relative = 4 * storage + 2000 * 0x1p-24;
    const at::Tensor eager = in.eager(options);
    expect_near("o", composed, eager, relative);
    expect_gradients_near(in.gradients_of(composed), in.gradients_of(eager),
                          relative);
  }
}

// A key that is hidden has score 0 in the definition. Where the others are at
// -2000 its exponential overflows; that must reach neither output nor gradient.
TEST(ComposedExtremes, HiddenKeysBesideVeryLowScores) {
  const at::Tensor q = at::full({1, 1, 3, 1}, 2000.0, at::kDouble);
  const at::Tensor k = at::full({1, 1, 4, 1}, -1.0, at::kDouble) +
                       at::arange(4, at::kDouble).view({1, 1, 4, 1}) * 1e-3;
  const Options options =
      Options().mask(test::Random(1).bools({3, 4}, 0.5)).scale(1.0);
  Tensors inputs = {test::leaf(q), test::leaf(k), test::leaf(k)};
  const at::Tensor composed =
      composed_attention(make_call(inputs[0], inputs[1], inputs[2], options));
  const at::Tensor fused = attention(inputs[0], inputs[1], inputs[2], options);
  const at::Tensor d_o = test::Random(2).normal({1, 1, 3, 1});
  expect_near("o", composed, fused);
  const auto second = [&](const at::Tensor& o) {
    const Tensors first = test::gradients({o}, inputs, {d_o}, true);
    Tensors all = test::gradients(first, inputs, {q, k, k});
    all.insert(all.end(), first.begin(), first.end());
    return all;
  };
  const Tensors got = second(composed), want = second(fused);
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(got[i].isfinite().all().item<bool>()) << i;
    // Scores of 2000 make the exponents that much less exact.
    expect_near("derivative", got[i], want[i], 2000 * test::kF64Close);
  }
}

// A times the identity is A.
TEST(ComposedWeights, AreTheMatrix) {
  const Case c{.batch = 2,
               .heads = 2,
               .kv_heads = 1,
               .n = 4,
               .m = 5,
               .formula = "x^3/sum",
               .causal = Causal::kLast,
               .dtype = DType::kF64};
  Instance instance(c);
  const Options options = test::options_of(c, instance);
  const Inputs in(instance);
  const at::Tensor one = at::eye(c.m, at::kDouble).expand({2, 1, -1, -1});
  expect_near("A",
              composed_attention(make_call(in.all[0], in.all[1], one, options)),
              test::eager_weights(
                  test::eager_scores(in.all[0], in.all[1], options), options));
}

}  // namespace composed_test
}  // namespace polyattn
