// First derivatives: which are computed, with what output gradients, and that
// of the bias. That their values are right is the matter of kernels_test.cc.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "polyattn/torch/attention.h"
#include "torch/eager.h"
#include "torch/tensors.h"

namespace polyattn {
namespace gradients_test {

using test::expect_near;
using test::expect_same_bits;
using test::leaf;
using test::Random;

using Options = AttentionOptions;
using Tensors = std::vector<at::Tensor>;

struct Inputs {
  at::Tensor q = Random(1).normal({2, 4, 5, 3}, at::kFloat);
  at::Tensor k = Random(2).normal({2, 2, 7, 3}, at::kFloat);
  at::Tensor v = Random(3).normal({2, 2, 7, 6}, at::kFloat);
  at::Tensor c = Random(4).normal({4, 4}, at::kFloat);
  at::Tensor d_o = Random(5).normal({2, 4, 5, 6}, at::kFloat);
};

// Every subset of those that want a gradient gets the same bits as all
// together, and the others get none.
TEST(Subsets, OfInputsThatRequireGradients) {
  const Inputs in;
  const auto run = [&](unsigned wanted) {
    Tensors t = {in.q, in.k, in.v, in.c};
    for (std::size_t i = 0; i < 4; ++i) {
      t[i] = t[i].clone().requires_grad_((wanted >> i & 1) != 0);
    }
    const at::Tensor o = attention(
        t[0], t[1], t[2],
        Options().activation("x/sqrt(N)").gqa(true).coefficients(t[3]));
    EXPECT_EQ(o.requires_grad(), wanted != 0);
    if (wanted != 0) o.backward(in.d_o);
    return t;
  };
  const Tensors all = run(15);
  for (unsigned wanted = 0; wanted < 16; ++wanted) {
    SCOPED_TRACE(wanted);
    const Tensors some = run(wanted);
    for (std::size_t i = 0; i < 4; ++i) {
      ASSERT_EQ(some[i].grad().defined(), (wanted >> i & 1) != 0);
      if (some[i].grad().defined()) {
        expect_same_bits("gradient", some[i].grad(), all[i].grad());
      }
    }
  }
}

// Also when all require one, but only some are asked for.
TEST(Subsets, OfGradientsThatAreAskedFor) {
  const Inputs in;
  for (const char* formula : {"softmax", "x^3/14"}) {
    const Tensors t = {leaf(in.q), leaf(in.k), leaf(in.v)};
    const at::Tensor o =
        attention(t[0], t[1], t[2], Options().activation(formula).gqa(true));
    const Tensors all = test::gradients({o}, t, {in.d_o});
    for (std::size_t i = 0; i < 3; ++i) {
      expect_same_bits("gradient", test::gradients({o}, {t[i]}, {in.d_o})[0],
                       all[i]);
    }
  }
}

// sum() hands back one number for all elements: every stride is zero.
TEST(OutputGradient, ExpandedOrStrided) {
  const Inputs in;
  const Tensors t = {leaf(in.q), leaf(in.k), leaf(in.v)};
  const at::Tensor o = attention(t[0], t[1], t[2], Options().gqa(true));
  const Tensors want = test::gradients({o}, t, {at::ones_like(o)});
  const Tensors got = test::gradients({o.sum()}, t, {at::ones({})});
  const Tensors random = test::gradients({o}, t, {in.d_o});
  const Tensors strided = test::gradients(
      {o}, t,
      {in.d_o.permute({3, 2, 0, 1}).contiguous().permute({2, 3, 1, 0})});
  for (std::size_t i = 0; i < 3; ++i) {
    expect_same_bits("expanded", got[i], want[i]);
    expect_same_bits("strided", strided[i], random[i]);
  }
}

TEST(OutputGradient, TwiceThroughARetainedGraph) {
  const Inputs in;
  const at::Tensor q = leaf(in.q);
  const at::Tensor o = attention(q, in.k, in.v, Options().gqa(true));
  o.backward(in.d_o, /*retain_graph=*/true);
  const at::Tensor once = q.grad().clone();
  o.backward(in.d_o);
  expect_same_bits("twice", q.grad(), once + once);
  EXPECT_THROW(o.backward(in.d_o), c10::Error);  // the graph is gone
}

// The identity, whose gradient is undefined: no zeros, no tensor at all.
class Blocked : public torch::autograd::Function<Blocked> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext*,
                            const at::Tensor& t) {
    return t.clone();
  }
  static std::vector<at::Tensor> backward(torch::autograd::AutogradContext*,
                                          std::vector<at::Tensor>) {
    return {at::Tensor()};
  }
};

TEST(OutputGradient, Undefined) {
  const Inputs in;
  const at::Tensor q = leaf(in.q);
  const at::Tensor o =
      Blocked::apply(attention(q, in.k, in.v, Options().gqa(true)));
  o.sum().backward();
  if (q.grad().defined()) {
    expect_same_bits("dq", q.grad(), at::zeros_like(q));
  }
  // The same for the gradient of a gradient.
  const at::Tensor dq = test::gradients(
      {attention(q, in.k, in.v, Options().gqa(true))}, {q}, {in.d_o}, true)[0];
  const at::Tensor twice =
      test::gradients({Blocked::apply(dq).sum()}, {q}, {at::ones({})})[0];
  expect_same_bits("twice", twice, at::zeros_like(q));
}

// o is read by the backward pass of softmax: torch must notice that it is no
// longer what it was.
TEST(OutputGradient, RefusesAnOutputChangedInPlace) {
  const Inputs in;
  const at::Tensor q = leaf(in.q);
  at::Tensor o = attention(q, in.k, in.v, Options().gqa(true));
  o.mul_(2);
  EXPECT_THROW(o.sum().backward(), c10::Error);
}

TEST(BiasGradient, AgreesWithEagerTorch) {
  const Inputs in;
  const std::vector<std::vector<std::int64_t>> sizes = {
      {2, 4, 5, 7}, {5, 7}, {4, 1, 1}, {2, 1, 1, 7}, {4, 5, 1}, {}};
  for (const std::string& formula : test::kEagerFormulas) {
    for (const auto& size : sizes) {
      SCOPED_TRACE(formula + ::testing::PrintToString(size));
      const at::Tensor bias = Random(6).normal(size);
      const at::Tensor gone = Random(7).bools(size, size.empty() ? 0 : 0.2);
      const at::Tensor b = leaf(bias.masked_fill(gone, -INFINITY));
      const Tensors t = {leaf(in.q.to(at::kDouble)), leaf(in.k.to(at::kDouble)),
                         leaf(in.v.to(at::kDouble)), b};
      const Options options =
          Options().activation(formula).gqa(true).mask(b).causal(Causal::kLast);
      const at::Tensor d_o = in.d_o.to(at::kDouble);
      const Tensors got =
          test::gradients({attention(t[0], t[1], t[2], options)}, t, {d_o});
      const Tensors want = test::gradients(
          {test::eager_attention(t[0], t[1], t[2], options)}, t, {d_o});
      for (std::size_t i = 0; i < 4; ++i) {
        expect_near("gradient", got[i], want[i]);
      }
      // What is removed has no gradient.
      EXPECT_EQ(got[3].masked_select(gone).abs().sum().item<double>(), 0);
    }
  }
}

// Heads with coefficients of their own are computed one by one, and a bias that
// they share is the sum of them.
TEST(BiasGradient, WithCoefficientsOfEachHead) {
  const Inputs in;
  const at::Tensor q = in.q.to(at::kDouble), k = in.k.to(at::kDouble);
  const at::Tensor c = leaf(Random(8).normal({4, 3}));
  for (const std::vector<std::int64_t>& size :
       std::vector<std::vector<std::int64_t>>{{5, 7}, {4, 5, 7}}) {
    const at::Tensor b = leaf(Random(6).normal(size));
    const Options options =
        Options().activation("x^2/sqrt(N)").gqa(true).mask(b).coefficients(c);
    const at::Tensor d_o = in.d_o.to(at::kDouble).narrow(3, 0, k.size(3));
    const Tensors got =
        test::gradients({attention(q, k, k, options)}, {b, c}, {d_o});
    const Tensors want = test::gradients(
        {test::eager_attention(q, k, k, options)}, {b, c}, {d_o});
    expect_near("bias", got[0], want[0]);
    expect_near("coefficients", got[1], want[1]);
  }
}

TEST(BiasGradient, DoesNotChangeTheOutput) {
  const Inputs in;
  const at::Tensor q = in.q.to(at::kDouble), k = in.k.to(at::kDouble);
  const at::Tensor bias = Random(6).normal({5, 7});
  const auto run = [&](const at::Tensor& b) {
    return attention(q, k, k, Options().gqa(true).mask(b));
  };
  expect_same_bits("o", run(bias), run(leaf(bias)));
  const at::NoGradGuard no_grad;
  expect_same_bits("o", run(leaf(bias)), run(bias));
}

}  // namespace gradients_test
}  // namespace polyattn
