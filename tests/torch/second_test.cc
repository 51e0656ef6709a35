// Second derivatives through the kernels, against those of the composed
// definition, of plain torch ops, and finite differences of the gradient.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <functional>
#include <string>
#include <vector>

#include "core/random_inputs.h"
#include "torch/call.h"
#include "torch/composed.h"
#include "torch/eager.h"
#include "torch/op_cases.h"
#include "torch/tensors.h"

namespace polyattn {
namespace second_test {

using test::Case;
using test::expect_near;
using test::Instance;
using test::leaf;
using test::Random;
using test::tensor_of;

using Options = AttentionOptions;
using Tensors = std::vector<at::Tensor>;
using Function = std::function<at::Tensor(const Tensors&)>;

// q, k, v, and coefficients if there are four.
Options with_coefficients(Options options, const Tensors& t) {
  if (t.size() > 3) options.coefficients(t[3]);
  return options;
}

Function fused(const Options& o) {
  return [=](const Tensors& t) {
    return attention(t[0], t[1], t[2], with_coefficients(o, t));
  };
}

Function composed(const Options& o) {
  return [=](const Tensors& t) {
    return composed_attention(
        make_call(t[0], t[1], t[2], with_coefficients(o, t)));
  };
}

Function eager(const Options& o) {
  return [=](const Tensors& t) {
    return test::eager_attention(t[0], t[1], t[2], with_coefficients(o, t));
  };
}

Tensors random_like(const Tensors& like, std::uint64_t seed) {
  Random random(seed);
  Tensors result;
  for (const at::Tensor& t : like) result.push_back(random.normal(t.sizes()));
  return result;
}

Tensors zeros_like(const Tensors& like) {
  Tensors result;
  for (const at::Tensor& t : like) result.push_back(at::zeros_like(t));
  return result;
}

Tensors leaves(const Tensors& tensors) {
  Tensors result;
  for (const at::Tensor& t : tensors) result.push_back(leaf(t));
  return result;
}

// The derivatives of sum(w . gradients of sum(d_o . f(t))) by t and d_o.
Tensors second(const Function& f, const Tensors& inputs) {
  const Tensors t = leaves(inputs);
  const at::Tensor o = f(t);
  const at::Tensor d_o = leaf(random_like({o}, 8)[0]);
  const Tensors first = test::gradients({o}, t, {d_o}, true);
  Tensors by = t;
  by.push_back(d_o);
  return test::gradients(first, by, random_like(t, 9));
}

void expect_second_near(const Function& got, const Function& want,
                        const Tensors& inputs) {
  const Tensors a = second(got, inputs), b = second(want, inputs);
  for (std::size_t i = 0; i < a.size(); ++i) {
    SCOPED_TRACE(i);
    expect_near("second derivative", a[i], b[i]);
  }
}

// What the gradient changes by along a direction u: central differences at h
// and 2h, combined so that the error is of order h^4. With h = 1e-4 that is
// 1e-16 times a fifth derivative; rounding leaves 1e-15/h.
void expect_finite_differences(const Function& f, const Tensors& inputs) {
  const Tensors u = random_like(inputs, 10);
  const at::Tensor d_o = random_like({f(inputs)}, 8)[0];
  const auto gradient_at = [&](double step) {
    Tensors t;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      t.push_back(leaf(inputs[i] + step * u[i]));
    }
    return test::gradients({f(t)}, t, {d_o});
  };
  const double h = 1e-4;
  const Tensors p1 = gradient_at(h), m1 = gradient_at(-h),
                p2 = gradient_at(2 * h), m2 = gradient_at(-2 * h);
  const Tensors t = leaves(inputs);
  const Tensors first = test::gradients({f(t)}, t, {d_o}, true);
  const Tensors got = test::gradients(first, t, u);
  for (std::size_t i = 0; i < t.size(); ++i) {
    SCOPED_TRACE(i);
    const at::Tensor want = (8 * (p1[i] - m1[i]) - (p2[i] - m2[i])) / (12 * h);
    expect_near("by finite differences", got[i], want, 1e-8);
  }
}

class Second : public ::testing::TestWithParam<int> {
 protected:
  std::string formula() const { return test::kEagerFormulas[GetParam()]; }
};

INSTANTIATE_TEST_SUITE_P(Formula, Second,
                         ::testing::Range(0, test::kEagerFormulaCount));

TEST_P(Second, AgreesWithComposedAndEagerTorch) {
  for (Case c : test::op_cases(GetParam(), 1)) {
    c.dtype = c.compute = DType::kF64;
    SCOPED_TRACE(::testing::PrintToString(c));
    Instance instance(c);
    const Options options = test::options_of(c, instance);
    const Tensors inputs = {tensor_of(instance.q), tensor_of(instance.k),
                            tensor_of(instance.v)};
    expect_second_near(fused(options), composed(options), inputs);
    expect_second_near(fused(options), eager(options), inputs);
  }
}

TEST_P(Second, AgreesWithFiniteDifferences) {
  Random random(20);
  const Tensors inputs = {random.normal({2, 4, 3, 2}),
                          random.normal({2, 2, 5, 2}),
                          random.normal({2, 2, 5, 3})};
  const Options options = Options()
                              .activation(formula())
                              .gqa(true)
                              .causal(Causal::kLast)
                              .mask(random.bools({3, 5}, 0.8));
  expect_finite_differences(fused(options), inputs);
}

TEST(SecondOfCoefficients, AllAndByHead) {
  Random random(21);
  for (const char* formula : {"x/sqrt(N)", "x", "x/sum"}) {
    for (const bool by_head : {false, true}) {
      SCOPED_TRACE(std::string(formula) + (by_head ? " by head" : ""));
      const Tensors inputs = {
          random.normal({2, 4, 3, 2}), random.normal({2, 2, 5, 2}),
          random.normal({2, 2, 5, 3}),
          by_head ? random.normal({4, 4}) : random.normal({4})};
      const Options options = Options().activation(formula).gqa(true);
      expect_second_near(fused(options), eager(options), inputs);
      expect_finite_differences(fused(options), inputs);
    }
  }
}

TEST(SecondOfBias, AgreesWithEagerTorch) {
  Random random(22);
  const Tensors inputs = {random.normal({1, 2, 3, 2}),
                          random.normal({1, 2, 5, 2}),
                          random.normal({1, 2, 5, 3}), random.normal({3, 5})};
  const auto with_bias = [](const Tensors& t) {
    return Options().activation("x^4/sum").mask(t[3]);
  };
  expect_second_near(
      [&](const Tensors& t) {
        return attention(t[0], t[1], t[2], with_bias(t));
      },
      [&](const Tensors& t) {
        return test::eager_attention(t[0], t[1], t[2], with_bias(t));
      },
      inputs);
}

// Gradients by some inputs alone, of which some are used.
TEST(SecondOfSubsets, AgreesWithEagerTorch) {
  Random random(23);
  const Tensors inputs = {random.normal({1, 2, 3, 2}),
                          random.normal({1, 2, 5, 2}),
                          random.normal({1, 2, 5, 3})};
  const at::Tensor d_o = random.normal({1, 2, 3, 3});
  const auto run = [&](const Function& f, unsigned wanted, std::size_t used) {
    Tensors t = leaves(inputs), by;
    for (std::size_t i = 0; i < 3; ++i) {
      t[i].requires_grad_((wanted >> i & 1) != 0);
      if (t[i].requires_grad()) by.push_back(t[i]);
    }
    const at::Tensor first = test::gradients({f(t)}, {t[used]}, {d_o}, true)[0];
    // dv depends on q and k alone.
    if (!first.requires_grad()) return zeros_like(by);
    return test::gradients({first}, by, random_like({first}, 9));
  };
  const Options options = Options().activation("x^3/sqrt(N)");
  for (unsigned wanted = 1; wanted < 8; ++wanted) {
    for (std::size_t used = 0; used < 3; ++used) {
      if ((wanted >> used & 1) == 0) continue;
      SCOPED_TRACE(std::to_string(wanted) + " d" + std::to_string(used));
      const Tensors got = run(fused(options), wanted, used);
      const Tensors want = run(eager(options), wanted, used);
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        expect_near("second derivative", got[i], want[i]);
      }
    }
  }
}

// In f32 the first derivatives are the kernels', the second the definition's in
// f32: sums of a dozen products, amplified at most a hundredfold.
TEST(SecondInLowPrecision, F32) {
  Random random(24);
  const Tensors wide = {random.normal({2, 2, 6, 4}),
                        random.normal({2, 2, 8, 4}),
                        random.normal({2, 2, 8, 3})};
  for (const std::string& formula : test::kEagerFormulas) {
    SCOPED_TRACE(formula);
    const Options options = Options().activation(formula);
    const Function narrow = [&](const Tensors& t) {
      return attention(t[0].to(at::kFloat), t[1].to(at::kFloat),
                       t[2].to(at::kFloat), options)
          .to(at::kDouble);
    };
    const Tensors got = second(narrow, wide),
                  want = second(eager(options), wide);
    for (std::size_t i = 0; i < got.size(); ++i) {
      expect_near("second derivative", got[i], want[i], 1200 * 0x1p-24);
    }
  }
}

}  // namespace second_test
}  // namespace polyattn
