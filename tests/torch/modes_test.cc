// The op under torch's modes: no gradient, inference, autocast, and the device
// "meta".
#include <gtest/gtest.h>
#include <torch/types.h>

#include <vector>

#include "polyattn/torch/attention.h"
#include "torch/autocast.h"
#include "torch/tensors.h"

namespace polyattn {
namespace modes_test {

using test::expect_same_bits;
using test::leaf;
using test::Random;

using Options = AttentionOptions;

struct Inputs {
  explicit Inputs(at::ScalarType type = at::kFloat)
      : q(leaf(Random(1).normal({2, 3, 5, 4}, type))),
        k(leaf(Random(2).normal({2, 3, 7, 4}, type))),
        v(leaf(Random(3).normal({2, 3, 7, 6}, type))) {}
  at::Tensor run(const Options& options = {}) const {
    return attention(q, k, v, options);
  }
  at::Tensor q, k, v;
};

TEST(GradModes, NoGradAndInferenceGiveTheSameOutput) {
  const Inputs in;
  for (const char* formula : {"softmax", "x^3/sqrt(N)"}) {
    const Options options = Options().activation(formula);
    const at::Tensor want = in.run(options);
    EXPECT_TRUE(want.requires_grad());
    {
      const at::NoGradGuard no_grad;
      const at::Tensor o = in.run(options);
      EXPECT_FALSE(o.requires_grad());
      expect_same_bits("no grad", o, want);
    }
    const c10::InferenceMode inference;
    const at::Tensor o = in.run(options);
    EXPECT_TRUE(o.is_inference());
    expect_same_bits("inference", o, want);
    const at::Tensor q = in.q.clone();  // a tensor of inference itself
    expect_same_bits("inference", attention(q, in.k, in.v, options), want);
  }
}

class Autocast {
 public:
  Autocast() {
    enable_autocast(true);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    enable_autocast(false);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
};

TEST(AutocastTest, ComputesAsInBf16WithGradientsOfTheInputsType) {
  const Inputs in;
  const auto narrow = [](const at::Tensor& t) {
    return leaf(t.to(at::kBFloat16));
  };
  const at::Tensor q = narrow(in.q), k = narrow(in.k), v = narrow(in.v);
  const at::Tensor want = attention(q, k, v);
  want.sum().backward();
  at::Tensor got, norm;
  {
    const Autocast autocast;
    got = in.run();
    norm = attention_with_norms(in.q, in.k, in.v).norms.weight;
  }
  expect_same_bits("o", got, want);
  EXPECT_EQ(got.scalar_type(), at::kBFloat16);
  EXPECT_EQ(norm.scalar_type(), at::kDouble);
  expect_same_bits("norm", norm, attention_with_norms(q, k, v).norms.weight);
  got.sum().backward();
  EXPECT_EQ(in.q.grad().scalar_type(), at::kFloat);
  expect_same_bits("dq", in.q.grad(), q.grad().to(at::kFloat));
  expect_same_bits("dk", in.k.grad(), k.grad().to(at::kFloat));
  expect_same_bits("dv", in.v.grad(), v.grad().to(at::kFloat));
}

TEST(AutocastTest, TakesInputsOfTwoTypesAndLeavesF64) {
  const Inputs in, wide(at::kDouble);
  const Autocast autocast;
  const at::Tensor o = attention(in.q.to(at::kBFloat16), in.k, in.v);
  EXPECT_EQ(o.scalar_type(), at::kBFloat16);
  expect_same_bits("o", o, in.run());
  EXPECT_EQ(wide.run().scalar_type(), at::kDouble);
}

TEST(AutocastTest, EndsWithItsScope) {
  const Inputs in;
  { const Autocast autocast; }
  EXPECT_EQ(in.run().scalar_type(), at::kFloat);
}

at::Tensor on_meta(const at::Tensor& t) {
  return at::empty_strided(t.sizes(), t.strides(),
                           t.options().device(at::kMeta))
      .requires_grad_(t.requires_grad());
}

void expect_same_shape(const at::Tensor& got, const at::Tensor& want) {
  EXPECT_TRUE(got.is_meta());
  EXPECT_EQ(got.sizes(), want.sizes());
  EXPECT_EQ(got.strides(), want.strides());
  EXPECT_EQ(got.scalar_type(), want.scalar_type());
}

TEST(Meta, HasTheShapesOfTheCpu) {
  for (const at::ScalarType type : {at::kFloat, at::kHalf}) {
    for (const bool strided : {false, true}) {
      const Inputs in(type);
      const at::Tensor q =
          strided ? leaf(in.q.transpose(1, 2)).transpose(1, 2) : in.q;
      const at::Tensor mask = Random(4).bools({5, 7}, 0.5);
      const auto here =
          attention_with_norms(q, in.k, in.v, Options().mask(mask));
      const auto there =
          attention_with_norms(on_meta(q), on_meta(in.k), on_meta(in.v),
                               Options().mask(on_meta(mask)));
      expect_same_shape(there.output, here.output);
      expect_same_shape(there.norms.weight, here.norms.weight);
      expect_same_shape(there.norms.jacobian, here.norms.jacobian);
      expect_same_shape(there.norms.max_abs_score, here.norms.max_abs_score);
      expect_same_shape(there.norms.non_finite, here.norms.non_finite);
    }
  }
}

TEST(Meta, GradientsHaveTheShapesOfTheInputs) {
  const Inputs in;
  const std::vector<at::Tensor> t = {on_meta(in.q), on_meta(in.k),
                                     on_meta(in.v),
                                     on_meta(leaf(at::ones({3, 4})))};
  const at::Tensor o =
      attention(t[0], t[1], t[2], Options().activation("x").coefficients(t[3]));
  o.sum().backward();
  for (const at::Tensor& each : t) expect_same_shape(each.grad(), each);
}

// Neither `sum` nor causal: torch 1.13 has no abs and no logical_not on meta.
TEST(Meta, DropoutGoesByTheComposedDefinition) {
  const Inputs in;
  const Options options = Options().activation("x^3/sqrt(N)").dropout(0.5);
  const at::Tensor o =
      attention(on_meta(in.q), on_meta(in.k), on_meta(in.v), options);
  EXPECT_TRUE(o.is_meta());
  EXPECT_EQ(o.sizes(), in.run().sizes());
}

}  // namespace modes_test
}  // namespace polyattn
