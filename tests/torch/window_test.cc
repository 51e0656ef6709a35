// A sliding window by the op: it is the bool mask that shows the same keys,
// whatever else is asked for.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <limits>
#include <string>
#include <vector>

#include "polyattn/torch/attention.h"
#include "torch/call.h"
#include "torch/composed.h"
#include "torch/dispatch.h"
#include "torch/eager.h"
#include "torch/tensors.h"

namespace polyattn {
namespace window_test {

using test::expect_near;
using test::leaf;
using test::Random;

using Options = AttentionOptions;
using Tensors = std::vector<at::Tensor>;

// Row i of N may see key j of M.
at::Tensor band(std::int64_t n, std::int64_t m, const Options& o) {
  const std::int64_t own = o.causal() == Causal::kLast ? m - n : 0;
  const at::Tensor ahead =
      at::arange(m).view({1, m}) - at::arange(n).view({n, 1}) - own;
  at::Tensor seen = at::ones({n, m}, at::kBool);
  const Window w = o.window();
  if (w.left >= 0) seen = seen.logical_and(ahead.ge(-w.left));
  if (w.right >= 0) seen = seen.logical_and(ahead.le(w.right));
  return seen;
}

struct Case {
  Window window;
  Causal causal;
};

const std::vector<Case> kCases = {{{2, 1}, Causal::kNone},
                                  {{-1, 3}, Causal::kNone},
                                  {{3, 0}, Causal::kFirst},
                                  {{0, 5}, Causal::kLast},
                                  {{4, -1}, Causal::kLast}};

struct Inputs {
  Inputs()
      : all{leaf(Random(1).normal({2, 4, 9, 3})),
            leaf(Random(2).normal({2, 2, 11, 3})),
            leaf(Random(3).normal({2, 2, 11, 5}))},
        d_o(Random(4).normal({2, 4, 9, 5})) {}
  at::Tensor op(const Options& o) const {
    return attention(all[0], all[1], all[2], o);
  }
  Tensors all;
  at::Tensor d_o;
};

// The options with a window, and those that say it as a mask.
struct Twins {
  Twins(const std::string& formula, const Case& c)
      : window(Options().activation(formula).causal(c.causal).gqa(true).window(
            c.window)),
        mask(Options(window).window({}).mask(band(9, 11, window))) {}
  Options window, mask;
};

class WindowOp : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Formula, WindowOp,
                         ::testing::ValuesIn(test::kEagerFormulas));

TEST_P(WindowOp, IsItsMask) {
  for (const Case& c : kCases) {
    const Twins twins(GetParam(), c);
    const Inputs in;
    const auto got =
        attention_with_norms(in.all[0], in.all[1], in.all[2], twins.window);
    const auto want =
        attention_with_norms(in.all[0], in.all[1], in.all[2], twins.mask);
    expect_near("o", got.output, want.output);
    expect_near("weight", got.norms.weight, want.norms.weight);
    expect_near("jacobian", got.norms.jacobian, want.norms.jacobian);
    expect_near("score", got.norms.max_abs_score, want.norms.max_abs_score);
    const Tensors own = test::gradients({got.output}, in.all, {in.d_o});
    const Tensors theirs = test::gradients({want.output}, in.all, {in.d_o});
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_GT(theirs[i].abs().max().item<double>(), 0) << i;
      expect_near("gradient", own[i], theirs[i]);
    }
  }
}

TEST_P(WindowOp, HasSecondDerivativesAndADefinition) {
  for (const Case& c : kCases) {
    const Twins twins(GetParam(), c);
    const Inputs in;
    const Call call = make_call(in.all[0], in.all[1], in.all[2], twins.window);
    const at::Tensor composed = composed_attention(call);
    expect_near("definition", composed, in.op(twins.mask));
    const auto second = [&](const at::Tensor& o) {
      const Tensors first = test::gradients({o}, in.all, {in.d_o}, true);
      return test::gradients(first, in.all, first);
    };
    const Tensors got = second(in.op(twins.window));
    const Tensors want = second(in.op(twins.mask));
    for (std::size_t i = 0; i < 3; ++i) expect_near("second", got[i], want[i]);
  }
}

TEST(WindowOpTest, GoesWithDropoutBiasAndCoefficients) {
  const Case c{{3, 2}, Causal::kNone};
  for (const bool by_head : {false, true}) {
    Twins twins("x^2/N", c);
    const at::Tensor own = leaf(Random(6).normal(
        by_head ? at::IntArrayRef({4, 3}) : at::IntArrayRef({3})));
    const at::Tensor bias = leaf(Random(7).normal({4, 9, 11}));
    const Inputs in;
    const auto run = [&](Options o) {
      at::manual_seed(9);
      const at::Tensor out = in.op(o.dropout(0.4).coefficients(own).bias(bias));
      Tensors result =
          test::gradients({out}, {in.all[0], in.all[2], own, bias}, {in.d_o});
      result.push_back(out);
      return result;
    };
    const Tensors got = run(twins.window), want = run(twins.mask);
    for (std::size_t i = 0; i < got.size(); ++i)
      expect_near("result", got[i], want[i]);
  }
}

// The ops below the dispatcher have it too: tracing goes there, and shapes.
TEST(WindowOpTest, GoesThroughTheDispatcher) {
  const Inputs in;
  const Options options = Options().gqa(true).activation("x^3/N").window(2, 3);
  const c10::Stack got = test::call_by_schema("polyattn::_fused_forward",
                                              {in.all[0],
                                               in.all[1],
                                               in.all[2],
                                               {},
                                               {},
                                               {},
                                               {},
                                               "x^3/N",
                                               1 / std::sqrt(3.0),
                                               std::int64_t{0},
                                               std::int64_t{0},
                                               0.0,
                                               std::int64_t{0},
                                               std::vector<std::int64_t>{2, 3},
                                               false});
  test::expect_same_bits("o", got[0].toTensor(), in.op(options));
  const at::Tensor o = got[0].toTensor();
  const Tensors own = test::gradients({o}, in.all, {in.d_o});
  const Tensors want = test::gradients({in.op(options)}, in.all, {in.d_o});
  for (std::size_t i = 0; i < 3; ++i)
    test::expect_same_bits("gradient", own[i], want[i]);
  const auto meta = [](const at::Tensor& t) { return t.to(at::kMeta); };
  EXPECT_EQ(
      attention(meta(in.all[0]), meta(in.all[1]), meta(in.all[2]), options)
          .sizes(),
      in.d_o.sizes());
}

// On a packed batch each sequence has its own positions.
TEST(WindowOpTest, GoesAlongEachSequenceOfAPackedBatch) {
  const at::Tensor q = leaf(Random(1).normal({12, 4, 3}));
  const at::Tensor k = leaf(Random(2).normal({14, 2, 3}));
  const at::Tensor q_ends = at::tensor({0, 5, 5, 12}, at::kLong);
  const at::Tensor k_ends = at::tensor({0, 8, 9, 14}, at::kLong);
  const c10::Stack all = test::call_by_schema(
      "polyattn::attention_varlen", {q,
                                     k,
                                     k,
                                     q_ends,
                                     k_ends,
                                     true,
                                     {},
                                     "x^2/N",
                                     {},
                                     "lower_right",
                                     "auto",
                                     std::vector<std::int64_t>{2, 0}});
  Tensors parts;
  for (const auto& [qa, qb, ka, kb] : {std::array<std::int64_t, 4>{0, 5, 0, 8},
                                       {5, 5, 8, 9},
                                       {5, 12, 9, 14}}) {
    const auto rows = [](const at::Tensor& t, std::int64_t a, std::int64_t b) {
      return t.slice(0, a, b).transpose(0, 1);
    };
    parts.push_back(attention(rows(q, qa, qb), rows(k, ka, kb), rows(k, ka, kb),
                              Options()
                                  .activation("x^2/N")
                                  .causal(Causal::kLast)
                                  .gqa(true)
                                  .window(2, 0))
                        .transpose(0, 1));
  }
  expect_near("o", all[0].toTensor(), at::cat(parts));
}

TEST(WindowOpTest, AsLongAsTheSequenceItIsNone) {
  const Inputs in;
  const Options options = Options().gqa(true).activation("x^2/N");
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t keys : {std::int64_t{11}, kMost})
    test::expect_same_bits("o", in.op(Options(options).window(keys, keys)),
                           in.op(options));
  // And may be linear.
  const at::Tensor o =
      in.op(Options(options).window(11, 11).path(Path::kLinear));
  expect_near("o", o, in.op(options));
}

TEST(WindowOpTest, SaysWhatIsWrong) {
  const Inputs in;
  const auto message = [&](const Options& options) {
    try {
      in.op(options);
    } catch (const c10::Error& error) {
      return std::string(error.what_without_backtrace());
    }
    return std::string();
  };
  const Options gqa = Options().gqa(true).activation("x^2");
  EXPECT_EQ(message(Options(gqa).window(-2, 0)),
            "[attention] window_size left -2 < -1 (no limit)");
  EXPECT_EQ(message(Options(gqa).window(3, -5)),
            "[attention] window_size right -5 < -1 (no limit)");
  EXPECT_EQ(message(Options(gqa).window(3, 0).path(Path::kLinear)),
            "[attention_forward] no linear path: a window shows each row other "
            "keys");
  try {
    test::call_by_schema("polyattn::attention",
                         {in.all[0],
                          in.all[1],
                          in.all[2],
                          {},
                          0.0,
                          false,
                          {},
                          true,
                          "softmax",
                          {},
                          "upper_left",
                          "auto",
                          {},
                          std::vector<std::int64_t>{1, 2, 3}});
    FAIL();
  } catch (const c10::Error& error) {
    EXPECT_EQ(std::string(error.what_without_backtrace()),
              "[attention] window_size [1, 2, 3] has 3 numbers, not 2: keys "
              "before a row's own position, and behind it");
  }
}

}  // namespace window_test
}  // namespace polyattn
