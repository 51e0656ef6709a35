// The ops through the dispatcher, by their schema, and in TorchScript.
#include "torch/dispatch.h"

#include <gtest/gtest.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/frontend/sugared_value.h>
#include <torch/script.h>
#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

#include "polyattn/torch/attention.h"
#include "torch/tensors.h"

namespace polyattn {
namespace dispatch_test {

using test::call_by_schema;
using test::expect_same_bits;
using test::leaf;
using test::Random;

using Options = AttentionOptions;

struct Inputs {
  at::Tensor q = leaf(Random(1).normal({2, 3, 5, 4}, at::kFloat));
  at::Tensor k = leaf(Random(2).normal({2, 3, 7, 4}, at::kFloat));
  at::Tensor v = leaf(Random(3).normal({2, 3, 7, 6}, at::kFloat));
};

TEST(DispatcherTest, FillsInTheDefaults) {
  const Inputs in;
  const c10::Stack result =
      call_by_schema("polyattn::attention", {in.q, in.k, in.v});
  ASSERT_EQ(result.size(), 1u);
  expect_same_bits("o", result[0].toTensor(), attention(in.q, in.k, in.v));
}

TEST(DispatcherTest, TakesArgumentsByNameAndInTorchsOrder) {
  const Inputs in;
  const at::Tensor mask = Random(4).bools({5, 7}, 0.8);
  expect_same_bits(
      "positional",
      call_by_schema("polyattn::attention",
                     {in.q, in.k, in.v, mask, 0.0, true})[0]
          .toTensor(),
      attention(in.q, in.k, in.v, Options().mask(mask).causal(true)));
  const at::Tensor c = at::tensor({0.0, 1.0, 0.5});
  expect_same_bits("named",
                   call_by_schema("polyattn::attention", {in.q, in.k, in.v},
                                  {{"is_causal", true},
                                   {"causal_alignment", "lower_right"},
                                   {"scale", 0.3},
                                   {"activation", "x/sqrt(N)"},
                                   {"coefficients", c}})[0]
                       .toTensor(),
                   attention(in.q, in.k, in.v,
                             Options()
                                 .causal(Causal::kLast)
                                 .scale(0.3)
                                 .activation("x/sqrt(N)")
                                 .coefficients(c)));
}

TEST(DispatcherTest, GivesTheNorms) {
  const Inputs in;
  const c10::Stack got =
      call_by_schema("polyattn::attention_with_norms", {in.q, in.k, in.v});
  const auto want = attention_with_norms(in.q, in.k, in.v);
  ASSERT_EQ(got.size(), 5u);
  expect_same_bits("o", got[0].toTensor(), want.output);
  expect_same_bits("weight", got[1].toTensor(), want.norms.weight);
  expect_same_bits("jacobian", got[2].toTensor(), want.norms.jacobian);
  expect_same_bits("score", got[3].toTensor(), want.norms.max_abs_score);
  expect_same_bits("bad", got[4].toTensor(), want.norms.non_finite);
}

// Plain tensors go around the inner ops; tensors of other kinds, and modes, see
// them with the formula as text. Both ways lead to the same.
TEST(DispatcherTest, TheInnerOpsAreTheShortWay) {
  const std::vector<std::int64_t> no_window = {-1, -1};
  const Inputs in, own;
  const at::Tensor want = attention(
      in.q, in.k, in.v, Options().activation("x^3/sqrt(N)").scale(0.5));
  const at::Tensor d_o = Random(5).normal({2, 3, 5, 6}, at::kFloat);
  want.backward(d_o);
  const c10::Stack got =
      call_by_schema("polyattn::_fused_forward", {own.q,
                                                  own.k,
                                                  own.v,
                                                  {},
                                                  {},
                                                  {},
                                                  {},
                                                  "x^3/sqrt(N)",
                                                  0.5,
                                                  std::int64_t{0},
                                                  std::int64_t{0},
                                                  0.0,
                                                  std::int64_t{0},
                                                  no_window,
                                                  false});
  const at::Tensor o = got[0].toTensor();
  expect_same_bits("o", o, want);
  o.backward(d_o);
  expect_same_bits("dq", own.q.grad(), in.q.grad());
  expect_same_bits("dk", own.k.grad(), in.k.grad());
  expect_same_bits("dv", own.v.grad(), in.v.grad());
  const at::NoGradGuard no_grad;
  const c10::Stack gradients = call_by_schema(
      "polyattn::_fused_backward",
      {d_o,
       own.q,
       own.k,
       own.v,
       {},
       {},
       {},
       {},
       o,
       got[1],
       "x^3/sqrt(N)",
       0.5,
       std::int64_t{0},
       std::int64_t{0},
       0.0,
       std::int64_t{0},
       no_window,
       c10::List<bool>({true, true, true, false, false, false})});
  expect_same_bits("dq", gradients[0].toTensor(), in.q.grad());
  expect_same_bits("dk", gradients[1].toTensor(), in.k.grad());
  expect_same_bits("dv", gradients[2].toTensor(), in.v.grad());
}

TEST(DispatcherTest, Formulas) {
  EXPECT_EQ(
      call_by_schema("polyattn::canonical_formula", {"(x*x*x) / sqrt( N )"})[0]
          .toStringRef(),
      "x^3/sqrt(N)");
  const auto c =
      call_by_schema("polyattn::polynomial_coefficients", {"1 + x + x^2/2"})[0];
  EXPECT_EQ(c.toDoubleVector(), (std::vector<double>{1, 1, 0.5}));
}

// TorchScript compiled in C++ knows torch's own ops by name; this is for ours.
class Names : public torch::jit::Resolver {
 public:
  std::shared_ptr<torch::jit::SugaredValue> resolveValue(
      const std::string& name, torch::jit::GraphFunction&,
      const torch::jit::SourceRange&) override {
    if (name != "polyattn") return nullptr;
    return std::make_shared<torch::jit::BuiltinModule>(name);
  }
};

TEST(TorchScript, CallsTheOpAndDifferentiatesIt) {
  torch::jit::Module script("script");
  script.define(R"(
def forward(self, q, k, v):
    return polyattn.attention(q, k, v, is_causal=True, activation="x^3/14")
)",
                std::make_shared<Names>());
  const Inputs in, own;
  const at::Tensor want =
      attention(in.q, in.k, in.v, Options().causal(true).activation("x^3/14"));
  want.sum().backward();
  // More than once: TorchScript profiles, then optimises.
  for (int i = 0; i < 3; ++i) {
    const at::Tensor got = script.forward({own.q, own.k, own.v}).toTensor();
    expect_same_bits("o", got, want);
    for (const at::Tensor& t : {own.q, own.k, own.v}) {
      t.mutable_grad() = at::Tensor();
    }
    got.sum().backward();
    expect_same_bits("dq", own.q.grad(), in.q.grad());
    expect_same_bits("dk", own.k.grad(), in.k.grad());
    expect_same_bits("dv", own.v.grad(), in.v.grad());
  }
}

}  // namespace dispatch_test
}  // namespace polyattn
