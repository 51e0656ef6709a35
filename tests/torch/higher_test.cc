// Derivatives of higher order where the inputs share a history, as they do in a
// network: self-attention, gradients within the loss, differential equations.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <functional>
#include <string>
#include <vector>

#include "polyattn/torch/attention.h"
#include "torch/eager.h"
#include "torch/tensors.h"

namespace polyattn {
namespace higher_test {

using test::expect_near;
using test::leaf;
using test::Random;

using Options = AttentionOptions;
using Tensors = std::vector<at::Tensor>;
using Attend = std::function<at::Tensor(const at::Tensor&, const at::Tensor&,
                                        const at::Tensor&)>;

struct Twins {
  explicit Twins(const std::string& formula)
      : options(Options().activation(formula).causal(true)),
        op([o = options](const at::Tensor& q, const at::Tensor& k,
                         const at::Tensor& v) {
          return attention(q, k, v, o);
        }),
        eager([o = options](const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v) {
          return test::eager_attention(q, k, v, o);
        }) {}
  Options options;
  Attend op, eager;
};

at::Tensor gradient(const at::Tensor& of, const at::Tensor& by) {
  return test::gradients({of}, {by}, {at::ones_like(of)}, true)[0];
}

// A squared gradient, whose output gradient depends on x as well. `order`
// says how many times it is differentiated in all.
at::Tensor nested(const Attend& attend, const at::Tensor& x, int order) {
  at::Tensor y = attend(x, x, x).pow(3).sum();
  for (int i = 1; i < order; ++i) y = gradient(y, x).pow(2).sum();
  return gradient(y, x);
}

class Higher : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Formula, Higher,
                         ::testing::ValuesIn(test::kEagerFormulas));

TEST_P(Higher, SelfAttentionOfOneTensor) {
  const Twins twins(GetParam());
  const at::Tensor x = leaf(Random(1).normal({1, 2, 4, 3}) / 2);
  for (int order = 1; order <= 3; ++order) {
    SCOPED_TRACE(order);
    expect_near("derivative", nested(twins.op, x, order),
                nested(twins.eager, x, order));
  }
}

TEST_P(Higher, InputsComputedFromOneAnother) {
  const Twins twins(GetParam());
  const auto loss = [](const Attend& attend, const at::Tensor& x) {
    const at::Tensor k = (x * 2).tanh(), v = k.narrow(3, 0, 2) * x.mean();
    const at::Tensor y = attend(x.flip({2}), k, v);
    const at::Tensor z = attend(k, x, y.sin().repeat({1, 1, 1, 2}));
    return gradient(gradient(z.square().sum(), x).square().sum(), x);
  };
  const at::Tensor x = leaf(Random(2).normal({1, 2, 4, 3}) / 2);
  expect_near("derivative", loss(twins.op, x), loss(twins.eager, x));
}

// The gradient penalty as it is written with backward(): the gradients of the
// first pass and of the second add up in .grad.
TEST(HigherByBackward, AccumulatesBothPasses) {
  const Twins twins("x^3/sqrt(N)");
  const auto run = [](const Attend& attend) {
    const at::Tensor x = leaf(Random(3).normal({1, 1, 5, 3}));
    const at::Tensor y = attend(x, x, x);
    y.sum().backward({}, /*retain_graph=*/true, /*create_graph=*/true);
    const at::Tensor first = x.grad();
    EXPECT_TRUE(first.requires_grad());
    x.mutable_grad() = at::Tensor();
    (first.square().sum() + y.square().sum()).backward();
    return x.grad();
  };
  expect_near("gradient", run(twins.op), run(twins.eager));
}

// The graph that create_graph kept can be gone through more than once.
TEST(HigherByBackward, RetainedGraphGivesTheSameTwice) {
  const at::Tensor x = leaf(Random(4).normal({1, 1, 5, 3}));
  const at::Tensor first = gradient(attention(x, x, x).pow(2).sum(), x);
  const at::Tensor w = Random(5).normal({1, 1, 5, 3});
  const at::Tensor once = test::gradients({first}, {x}, {w})[0];
  test::expect_same_bits("again", test::gradients({first}, {x}, {w})[0], once);
}

// u(t): tokens that are functions of t, attention among them, their sum.
class Network {
 public:
  explicit Network(std::uint64_t seed) {
    Random random(seed);
    for (at::Tensor* t : {&a_, &b_}) *t = leaf(random.normal({kTokens, kD}));
    for (at::Tensor* t : {&q_, &k_, &v_}) *t = leaf(random.normal({kD, kD}));
  }

  at::Tensor u(const Attend& attend, const at::Tensor& t) const {
    const at::Tensor x = (t.view({-1, 1, 1, 1}) * a_ + b_).sin();
    return attend(at::matmul(x, q_), at::matmul(x, k_), at::matmul(x, v_))
        .sum({1, 2, 3});
  }

  Tensors parameters() const { return {a_, b_, q_, k_, v_}; }

 private:
  static constexpr std::int64_t kTokens = 4, kD = 3;
  at::Tensor a_, b_, q_, k_, v_;
};

at::Tensor second_derivative(const Network& net, const Attend& attend,
                             const at::Tensor& t) {
  return gradient(gradient(net.u(attend, t), t), t);
}

// Five points: the error is h^4/90 times the sixth derivative, which for sines
// of frequency 2 in cubes is below 1e5; and 6 roundings over h^2.
TEST_P(Higher, SecondDerivativeByTimeAgreesWithFiniteDifferences) {
  const Twins twins(GetParam());
  const Network net(6);
  const at::Tensor t = leaf(at::linspace(-1, 1, 7, at::kDouble));
  const double h = 1e-3;
  const auto u = [&](double step) {
    const at::NoGradGuard no_grad;
    return net.u(twins.op, t + step);
  };
  const at::Tensor want =
      (-u(2 * h) + 16 * u(h) - 30 * u(0) + 16 * u(-h) - u(-2 * h)) /
      (12 * h * h);
  // 1e-12/90 * 1e5 + 64/12 * 1e-15/1e-6 is below 1e-8, for u of size 1.
  expect_near("u''", second_derivative(net, twins.op, t), want, 1e-7);
}

// The residual of u'' + u = 0 is what such a network is trained on: the third
// derivative, by every parameter.
TEST_P(Higher, GradientOfAResidualByParameters) {
  const Twins twins(GetParam());
  const Network net(7);
  const at::Tensor t = leaf(at::linspace(-1, 1, 5, at::kDouble));
  const auto run = [&](const Attend& attend) {
    const at::Tensor residual =
        second_derivative(net, attend, t) + net.u(attend, t);
    return test::gradients({residual.square().mean()}, net.parameters(),
                           {at::ones({}, at::kDouble)});
  };
  const Tensors got = run(twins.op), want = run(twins.eager);
  for (std::size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE(i);
    expect_near("gradient", got[i], want[i]);
  }
}

}  // namespace higher_test
}  // namespace polyattn
