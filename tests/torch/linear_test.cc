// The path in linear time as a torch op: its values and derivatives are those
// of the dense path, and what has no such path is refused.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "polyattn/torch/attention.h"
#include "torch/tensors.h"

namespace polyattn {
namespace linear_test {

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

std::vector<LinearCase> linear_cases() {
  const auto padding = Random(9).bools({2, 1, 1, 9}, 0.7);
  const auto formula = [](const char* text) {
    return Options().activation(text).gqa(true);
  };
  return {
      {"x", formula("x/sqrt(N)"), 6, 9},
      {"x^2 causal", formula("x^2/sqrt(N)").causal(true), 9, 9},
      {"x^3 last", formula("x^3/14").causal(Causal::kLast), 4, 9},
      {"x^4/sum padded", formula("x^4/sum").mask(padding), 7, 9},
      {"mixed", formula("1 + x + x^2/2").causal(true).mask(padding), 9, 9},
      {"mixed/sum", formula("(1 + x + x^2/2)/sum").scale(-0.7), 5, 9},
  };
}

Tensors inputs_of(const LinearCase& c) {
  return {Random(1).normal({2, 4, c.n, 3}), Random(2).normal({2, 2, c.m, 3}),
          Random(3).normal({2, 2, c.m, 5})};
}

// Output, gradients, and the gradients of those.
Tensors derivatives(const LinearCase& c, Path path) {
  Tensors t;
  for (const at::Tensor& x : inputs_of(c)) t.push_back(leaf(x));
  const at::Tensor o =
      attention(t[0], t[1], t[2], Options(c.options).path(path));
  const at::Tensor d_o = leaf(Random(4).normal(o.sizes()));
  Tensors result = {o};
  const Tensors first = gradients({o}, t, {d_o}, true);
  result.insert(result.end(), first.begin(), first.end());
  Tensors weights, by = t;
  for (std::size_t i = 0; i < first.size(); ++i)
    weights.push_back(Random(10 + i).normal(first[i].sizes()));
  by.push_back(d_o);
  for (const at::Tensor& x : gradients(first, by, weights)) result.push_back(x);
  return result;
}

TEST(LinearPath, ValuesAndDerivativesAreThoseOfTheDensePath) {
  for (const LinearCase& c : linear_cases()) {
    SCOPED_TRACE(c.name);
    const Tensors dense = derivatives(c, Path::kDense);
    const Tensors linear = derivatives(c, Path::kLinear);
    ASSERT_EQ(dense.size(), linear.size());
    for (std::size_t i = 0; i < dense.size(); ++i)
      expect_near(std::to_string(i).c_str(), linear[i], dense[i]);
  }
}

// d/dx of sum(d_o . o) along a random direction, by central differences.
TEST(LinearPath, GradientsAreFiniteDifferences) {
  for (const LinearCase& c : linear_cases()) {
    SCOPED_TRACE(c.name);
    const Options options = Options(c.options).path(Path::kLinear);
    const Tensors at_point = inputs_of(c);
    const at::Tensor d_o = Random(4).normal({2, 4, c.n, 5});
    for (std::size_t i = 0; i < at_point.size(); ++i) {
      const at::Tensor direction = Random(20 + i).normal(at_point[i].sizes());
      const auto value = [&](double step) {
        Tensors t = at_point;
        t[i] = t[i] + step * direction;
        return (attention(t[0], t[1], t[2], options) * d_o).sum();
      };
      Tensors t;
      for (const at::Tensor& x : at_point) t.push_back(leaf(x));
      const Tensors g =
          gradients({attention(t[0], t[1], t[2], options)}, t, {d_o});
      const double h = 1e-5;
      expect_near("slope", (g[i] * direction).sum(),
                  (value(h) - value(-h)) / (2 * h), 1e-7);
    }
  }
}

TEST(LinearPath, LearnedCoefficientsHaveGradients) {
  Tensors results[2];
  for (const Path path : {Path::kDense, Path::kLinear}) {
    Tensors t = {leaf(Random(1).normal({1, 2, 7, 3})),
                 leaf(Random(2).normal({1, 2, 7, 3})),
                 leaf(Random(3).normal({1, 2, 7, 3})),
                 leaf(Random(4).normal({2, 3}))};
    const at::Tensor o = attention(
        t[0], t[1], t[2],
        Options().activation("x^2/sqrt(N)").coefficients(t[3]).path(path));
    results[path == Path::kLinear] =
        gradients({o}, t, {Random(5).normal(o.sizes())});
  }
  for (std::size_t i = 0; i < 4; ++i)
    expect_near("gradient", results[1][i], results[0][i]);
}

TEST(LinearPath, NormsComeFromTheDensePathAndTheOutputIsTheSame) {
  const at::Tensor x = Random(1).normal({1, 2, 40, 3});
  const Options options =
      Options().activation("x^2/sqrt(N)").path(Path::kLinear);
  const AttentionWithNorms both = attention_with_norms(x, x, x, options);
  expect_near("o", both.output, attention(x, x, x, options));
  EXPECT_GT(both.norms.weight.min().item<double>(), 0);
}

void expect_refused(const Options& options, const std::string& part) {
  const at::Tensor x = Random(1).normal({1, 2, 6, 3});
  try {
    attention(x, x, x, options);
    ADD_FAILURE() << "no error: " << part;
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what_without_backtrace()).find(part),
              std::string::npos)
        << error.what_without_backtrace();
  }
}

TEST(LinearPath, IsRefusedWhereThereIsNone) {
  const Options linear = Options().path(Path::kLinear);
  expect_refused(Options(linear).activation("softmax"),
                 "no linear path: softmax is not a polynomial");
  expect_refused(Options(linear).activation("x^3/sum"), "both signs");
  expect_refused(
      Options(linear).activation("x^2").mask(Random(1).normal({6, 6})),
      "a bias is added to the scores");
  expect_refused(
      Options(linear).activation("x^2").mask(Random(1).bools({6, 6}, 0.5)),
      "the mask differs from row to row");
  expect_refused(Options(linear).activation("x^2").dropout(0.5),
                 "no linear path");
}

TEST(LinearPath, OverflowIsSaid) {
  const at::Tensor x = at::full({1, 1, 6, 3}, 1e13, at::kFloat);
  try {
    attention(x, x, x,
              Options().activation("x^4").scale(1e-26).path(Path::kLinear));
    ADD_FAILURE() << "no error";
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what()).find("overflow"), std::string::npos);
  }
  // The choice is the dense path then.
  const at::Tensor o =
      attention(x, x, x, Options().activation("x^4").scale(1e-26));
  EXPECT_TRUE(o.isfinite().all().item<bool>());
}

}  // namespace linear_test
}  // namespace polyattn
