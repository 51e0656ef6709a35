// A sliding window: the kernels against the reference, the window said as a
// mask, and what a window must not cost.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/compare_outputs.h"
#include "core/error_bound.h"
#include "core/kernel_cases.h"
#include "core/problem.h"
#include "core/random_inputs.h"
#include "polyattn/plan.h"
#include "support/message_of.h"

namespace polyattn::test {
namespace {

constexpr std::array<Window, 8> kWindows = {
    {{0, 0}, {3, -1}, {-1, 2}, {5, 4}, {17, 0}, {1, 30}, {40, 7}, {100, 100}}};

void expect_right(const Case& c, const std::vector<std::string>& targets) {
  SCOPED_TRACE(::testing::PrintToString(c));
  const Instance instance(c);
  const Outputs want = instance.reference();
  const Outputs bound = error_bound(instance, want, c.dtype);
  for_each_target(targets, [&](const std::string&) {
    const Outputs got = run_kernels(instance, c.dtype);
    expect_all_within(got, want, bound);
    expect_stats_within(got, want, bound);
    SerialParallel serial;
    Outputs bare = instance.outputs(c.dtype);
    run_forward(instance, {bare.o.tensor, {}, {}}, serial);
    expect_within("o alone", bare.o, want.o, bound.o);
  });
}

class WindowOf : public EveryFormula {};

INSTANTIATE_TEST_SUITE_P(Formula, WindowOf, ::testing::Range(0, kFormulaCount));

TEST_P(WindowOf, EveryStructureAndWindow) {
  int turn = GetParam();
  for (Case c : structure_cases(GetParam())) {
    // A third of them: structures, types and windows come round all the same.
    if (++turn % 3 != 0) continue;
    c.window = kWindows[static_cast<std::size_t>(turn / 3) % kWindows.size()];
    expect_right(c, supported_targets());
  }
}

// Long enough for several blocks of keys, blocks of queries and chunks.
TEST_P(WindowOf, LongSequences) {
  const int turn = GetParam();
  const std::int64_t n = light() ? 150 : 390, m = light() ? 170 : 420;
  Case c{.n = n, .m = m, .d = 9, .e = 21, .formula = formula()};
  c = with_structure(c, (turn * 3 + 1) % kStructures, turn);
  c.batch = c.q_lengths.empty() ? 1 : c.batch;
  c.dtype = kTypes[turn % 8].dtype, c.compute = kTypes[turn % 8].compute;
  c.dropout = turn % 3 == 0 ? 0.3 : 0;
  for (const Window& window :
       {Window{12, 0}, Window{64, 25}, Window{-1, 130}}) {
    c.window = window;
    expect_right(c, targets_for(c));
  }
}

TEST_P(WindowOf, ThreadsDoNotChangeABit) {
  Case c{.n = 400,
         .m = 410,
         .d = 16,
         .e = 20,
         .formula = formula(),
         .bias = GetParam() % 2 == 0 ? Extra::kHeads : Extra::kAbsent,
         .window = {50, 9}};
  if (light()) c.n = 270, c.m = 260;
  const Instance instance(c);
  const Outputs want = run_kernels(instance, c.dtype);
  expect_same_on_threads(want, [&](Parallel& parallel) {
    return run_kernels(instance, c.dtype, parallel);
  });
}

TEST_P(WindowOf, AsLongAsTheSequenceIsNoWindowToTheLastBit) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const Causal causal : {Causal::kNone, Causal::kFirst, Causal::kLast}) {
    Case c{.heads = 2,
           .n = 61,
           .m = 83,
           .formula = formula(),
           .causal = causal,
           .mask = Extra::kRows};
    const Outputs want = run_kernels(Instance(c), c.dtype);
    for (const Window& window : {Window{82, 82}, Window{kMost, kMost}}) {
      c.window = window;
      SCOPED_TRACE(::testing::PrintToString(c));
      expect_same_bits(run_kernels(Instance(c), c.dtype), want);
    }
  }
}

TEST(WindowReference, IsTheMaskThatSaysTheSame) {
  for (const Causal causal : {Causal::kNone, Causal::kFirst, Causal::kLast}) {
    for (const std::int64_t n : {1, 7, 12}) {
      for (const Window& window : kWindows) {
        Case c{.heads = 2,
               .n = n,
               .m = 9,
               .formula = "x^3/sqrt(N)",
               .causal = causal,
               .bias = Extra::kFull,
               .dtype = DType::kF64,
               .window = window};
        SCOPED_TRACE(::testing::PrintToString(c));
        const Outputs want = Instance(c).reference();
        Case with_mask = c;
        with_mask.window = {};
        with_mask.mask = Extra::kRows;
        Instance masked(with_mask);
        // The numbers drawn before the mask are those without it.
        for (std::int64_t i = 0; i < n; ++i)
          for (std::int64_t j = 0; j < 9; ++j)
            masked.mask[static_cast<std::size_t>(i * 9 + j)] = sees(c, i, j);
        expect_same_bits(masked.reference(), want);
      }
    }
  }
}

TEST(WindowReference, CountsTheKeysByHand) {
  // 1/N with values of 1 gives 1 wherever a row sees a key; its scale is 1/n.
  const auto counts = [](std::int64_t n, Causal causal, Window window) {
    const Instance instance(Case{
        .n = n, .m = 5, .formula = "1/N", .causal = causal, .window = window});
    std::vector<int> seen;
    for (const RowState& row : instance.reference().rows)
      seen.push_back(
          row.scale == 0 ? 0 : static_cast<int>(std::lround(1 / row.scale)));
    return seen;
  };
  using List = std::vector<int>;
  EXPECT_EQ(counts(5, Causal::kNone, {1, 1}), (List{2, 3, 3, 3, 2}));
  EXPECT_EQ(counts(5, Causal::kNone, {-1, 0}), (List{1, 2, 3, 4, 5}));
  EXPECT_EQ(counts(5, Causal::kFirst, {1, 3}), (List{1, 2, 2, 2, 2}));
  EXPECT_EQ(counts(3, Causal::kLast, {1, 0}), (List{2, 2, 2}));
  EXPECT_EQ(counts(3, Causal::kFirst, {0, 0}), (List{1, 1, 1}));
  // Rows 6 and 7 stand behind the last key: one of them still reaches it.
  EXPECT_EQ(counts(8, Causal::kNone, {2, 0}), (List{1, 2, 3, 3, 3, 2, 1, 0}));
}

// How many pairs of a query and a key the kernels multiply. A NaN in the value
// of key j, in a column of its own, meets the weight of every query that key j
// is worked on for, even where that is zero; one in the gradient of output i
// does the same in backward.
struct Touched {
  std::int64_t forward = 0, backward = 0;
};

std::int64_t count_nan(const Buffer& buffer) {
  std::int64_t count = 0;
  for_each_index(buffer.tensor.size, [&](const Extents& x) {
    if (std::isnan(at(buffer.tensor, x))) ++count;
  });
  return count;
}

Touched touched_pairs(const Case& c) {
  Instance instance(c);  // N = M = E
  const auto unit = [&](Buffer& buffer, double there) {
    for_each_index(buffer.tensor.size, [&](const Extents& x) {
      buffer.set(x, x[2] == x[3] ? there : 1);
    });
  };
  SerialParallel serial;
  Outputs out = instance.outputs(c.dtype);
  Touched touched;
  unit(instance.v, kNaN);
  run_forward(instance, out.results(), serial);
  touched.forward = count_nan(out.o);
  unit(instance.v, 1);
  run_forward(instance, out.results(), serial);
  unit(instance.d_o, kNaN);
  AttentionGradients gradients;
  gradients.dv = out.dv.tensor;
  run_backward(instance, out, gradients, serial);
  touched.backward = count_nan(out.dv);
  return touched;
}

// A query is worked on with its own strip (at most 32 rows), or in backward
// with its block of 64 and a strip: keys that no row of these sees are skipped.
TEST(WindowCost, GrowsWithTheQueriesAlone) {
  for (const Causal causal : {Causal::kNone, Causal::kLast}) {
    for (const char* formula : {"softmax", "x^2/sqrt(N)"}) {
      Case c{.d = 4,
             .formula = formula,
             .causal = causal,
             .window = {30, causal == Causal::kNone ? 10 : 0}};
      const std::int64_t keys = c.window.left + c.window.right + 1;
      for (const std::int64_t n : {256, 512, 1024}) {
        if (light() && n > 512) continue;
        c.n = c.m = c.e = n;
        SCOPED_TRACE(::testing::PrintToString(c));
        const Touched touched = touched_pairs(c);
        EXPECT_LE(touched.forward, n * (keys + 31));
        EXPECT_LE(touched.backward, n * (keys + 95));
        // Else nothing was counted: every pair that is visible is worked on.
        EXPECT_GE(touched.forward, (n - keys) * keys);
        EXPECT_GE(touched.backward, (n - keys) * keys);
      }
    }
  }
}

TEST(WindowCost, TheWorkspaceIsLinearInTheLength) {
  const auto bytes = [](std::int64_t n, bool backward) {
    const Extents size = {1, 2, n, 32};
    static constexpr float kNothing = 0;
    const ConstTensor t{&kNothing, DType::kF32, size, contiguous_strides(size)};
    AttentionInputs in{.q = t, .k = t, .v = t};
    std::uint8_t seen = 1;
    in.mask = ConstMask{&seen, {1, 1, n, n}, {0, 0, n, 1}};
    const AttentionConfig config{.window = {64, 0}};
    return static_cast<double>(
        backward ? attention_backward_workspace(in, config, 2)
                 : attention_forward_workspace(in, config, 2));
  };
  for (const bool backward : {false, true})
    EXPECT_LE(bytes(65536, backward), 16.01 * bytes(4096, backward));
}

TEST(WindowPlan, IsDenseAndSaysWhy) {
  const auto estimate = [](std::int64_t n, const AttentionConfig& config) {
    const Extents size = {1, 1, n, 64};
    const ConstTensor t{nullptr, DType::kF32, size, contiguous_strides(size)};
    return estimate_paths({.q = t, .k = t, .v = t}, config,
                          Direction::kForward);
  };
  AttentionConfig config{.activation = Activation::parse("x^2/N"),
                         .causal = Causal::kLast};
  EXPECT_EQ(estimate(65536, config).path, Path::kLinear);
  config.window = {127, 0};
  const PathEstimate short_one = estimate(32768, config);
  const PathEstimate long_one = estimate(65536, config);
  EXPECT_EQ(long_one.path, Path::kDense);
  EXPECT_EQ(long_one.reason,
            "there is no linear path: a window shows each row other keys");
  EXPECT_NEAR(long_one.dense_seconds / short_one.dense_seconds, 2, 0.01);
  // As long as the sequence it is none.
  config.window = {65535, 0};
  EXPECT_EQ(estimate(65536, config).path, Path::kLinear);
}

// The cost of the pairs alone, against a count.
TEST(WindowPlan, CountsItsPairs) {
  const PathCosts before = path_costs();
  set_path_costs(PathCosts{{.pair = 1}, {.pair = 1}});
  for (const Causal causal : {Causal::kNone, Causal::kFirst, Causal::kLast}) {
    for (const std::int64_t n : {1, 7, 12}) {
      for (const Window& window : kWindows) {
        const Case c{.heads = 3,
                     .kv_heads = 1,
                     .n = n,
                     .m = 9,
                     .causal = causal,
                     .window = window};
        SCOPED_TRACE(::testing::PrintToString(c));
        const Instance instance(c);
        double pairs = 0;
        for (std::int64_t i = 0; i < n; ++i)
          for (std::int64_t j = 0; j < 9; ++j) pairs += 3 * sees(c, i, j);
        const PathEstimate e = estimate_paths(
            instance.inputs(), instance.config(), Direction::kForward);
        EXPECT_NEAR(e.dense_seconds, 1e-9 * pairs, 1e-15);
      }
    }
  }
  set_path_costs(before);
}

TEST(WindowErrors, SayWhatIsWrong) {
  const auto message = [](Window window, Path path) {
    Case c{.formula = "x^2", .path = path, .window = window};
    const Instance instance(c);
    return message_of<std::invalid_argument>([&] {
      Outputs out = instance.outputs(c.dtype);
      attention_forward(instance.inputs(), instance.config(), out.results());
    });
  };
  EXPECT_EQ(message({-2, 0}, Path::kDense),
            "[attention_forward] window left -2 < -1 (no limit)");
  EXPECT_EQ(message({0, -7}, Path::kDense),
            "[attention_forward] window right -7 < -1 (no limit)");
  EXPECT_EQ(message({1, 0}, Path::kLinear),
            "[attention_forward] no linear path: a window shows each row other "
            "keys");
  const Instance fading(Case{.formula = "x^2/N",
                             .causal = Causal::kLast,
                             .path = Path::kAuto,
                             .window = {2, 0},
                             .decay = Decay::kHeads});
  EXPECT_EQ(message_of<std::invalid_argument>([&] {
              Outputs out = fading.outputs(DType::kF32);
              attention_forward(fading.inputs(), fading.config(),
                                {out.o.tensor, out.rows, {}});
            }),
            "[attention_forward] log_decay together with a window of 2 keys");
}

}  // namespace
}  // namespace polyattn::test
