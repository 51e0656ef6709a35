// Linear time in torch ops against all pairs: outputs and derivatives of first
// and second order; what has no such form says why.
#include "torch/composed_linear.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "torch/call.h"
#include "torch/composed.h"
#include "torch/tensors.h"

namespace polyattn {
namespace composed_linear_test {

using test::expect_near;
using test::gradients;
using test::leaf;
using test::Random;

using Options = AttentionOptions;
using Tensors = std::vector<at::Tensor>;

struct LinearCase {
  std::string name;
  Options options;
  std::int64_t n, m;
};

Options formula(const char* text) {
  return Options().activation(text).gqa(true);
}

// Lengths beyond a chunk of rows, and the alignments at which one side has rows
// that the other has not.
std::vector<LinearCase> linear_cases() {
  const auto padding = Random(9).bools({2, 1, 1, 150}, 0.7);
  const at::Tensor shared = Random(7).normal({3});
  const at::Tensor by_head = Random(8).normal({4, 4});
  return {
      {"x", formula("x/sqrt(N)"), 6, 9},
      {"x^2", formula("x^2/N").scale(-0.7), 150, 140},
      {"constant", formula("1 + x + x^2/2").mask(padding), 40, 150},
      {"causal", formula("x^2/sqrt(N)").causal(true), 150, 150},
      {"padded", formula("x^3/N").causal(true).mask(padding), 150, 150},
      {"last", formula("x^3/14").causal(Causal::kLast), 130, 300},
      {"last, few", formula("x^2/N").causal(Causal::kLast), 150, 9},
      {"first, few", formula("x^2/N").causal(true), 150, 9},
      {"first, many", formula("x^2/N").causal(true), 9, 150},
      {"shared", formula("x^2/sqrt(N)").coefficients(shared), 9, 9},
      {"by head", formula("x^3/N").causal(true).coefficients(by_head), 9, 9},
  };
}

Tensors inputs_of(const LinearCase& c) {
  return {Random(1).normal({2, 4, c.n, 3}), Random(2).normal({2, 2, c.m, 3}),
          Random(3).normal({2, 2, c.m, 5})};
}

// Output, gradients, and the gradients of those.
Tensors derivatives(const LinearCase& c, bool linear) {
  Tensors t;
  for (const at::Tensor& x : inputs_of(c)) t.push_back(leaf(x));
  Options options = c.options;
  if (options.coefficients()) {
    t.push_back(leaf(*options.coefficients()));
    options.coefficients(t.back());
  }
  const Call call = make_call(t[0], t[1], t[2], options);
  EXPECT_EQ(why_not_linear(call), "");
  const at::Tensor o =
      linear ? composed_linear(call) : composed_attention(call);
  const at::Tensor d_o = leaf(Random(4).normal(o.sizes()));
  Tensors result = {o};
  const Tensors first = gradients({o}, t, {d_o}, true);
  result.insert(result.end(), first.begin(), first.end());
  Tensors weights, by = t;
  for (const at::Tensor& g : first)
    weights.push_back(Random(5).normal(g.sizes()));
  by.push_back(d_o);
  const Tensors second = gradients(first, by, weights);
  result.insert(result.end(), second.begin(), second.end());
  return result;
}

TEST(ComposedLinear, IsAllPairs) {
  for (const LinearCase& c : linear_cases()) {
    SCOPED_TRACE(c.name);
    const Tensors got = derivatives(c, true), want = derivatives(c, false);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      expect_near(("number " + std::to_string(i)).c_str(), got[i], want[i]);
  }
}

TEST(ComposedLinear, SaysWhyNot) {
  const auto reason = [](const Options& options) {
    const at::Tensor q = Random(1).normal({1, 2, 4, 3});
    return why_not_linear(make_call(q, q, q, options));
  };
  const at::Tensor square = Random(2).normal({4, 4});
  EXPECT_EQ(reason(formula("softmax")), "softmax is not a polynomial");
  EXPECT_EQ(reason(formula("x^4/sum")), "its divisor is sum");
  EXPECT_EQ(reason(formula("x^2").dropout(0.5)), "dropout needs each weight");
  EXPECT_EQ(reason(formula("x^2").mask(square)),
            "a bias differs by query and key");
  EXPECT_EQ(reason(formula("x^2").mask(square.gt(0))),
            "the mask differs by query");
}

TEST(ComposedLinear, IsFasterWhereSequencesAreLong) {
  const auto faster = [](std::int64_t n, const char* text) {
    const at::Tensor q = at::zeros({1, 1, n, 4});
    return is_faster_linear(make_call(q, q, q, formula(text)));
  };
  // Ten features.
  EXPECT_FALSE(faster(20, "x^2/N"));
  EXPECT_TRUE(faster(21, "x^2/N"));
  EXPECT_FALSE(faster(1000, "softmax"));
}

}  // namespace composed_linear_test
}  // namespace polyattn
