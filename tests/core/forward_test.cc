// The forward kernels against the reference, within the error that rounding
// can explain.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/error_bound.h"
#include "core/kernel_cases.h"
#include "core/random_inputs.h"

namespace polyattn::test {
namespace {

// A case, what is right, and how far off a kernel may be.
struct Answer {
  explicit Answer(const Case& c) : instance(c), want(forward(instance)) {
    bound = error_bound(instance, want, c.dtype);
  }

  static Outputs forward(const Instance& instance) {
    Outputs out = instance.outputs(DType::kF64);
    reference_forward(instance.inputs(), instance.config(), out.results());
    return out;
  }

  Instance instance;
  Outputs want, bound;
};

// With all results, and with the output alone, which takes other paths.
void expect_right(const Case& c, const std::vector<std::string>& targets) {
  SCOPED_TRACE(::testing::PrintToString(c));
  const Answer answer(c);
  for_each_target(targets, [&](const std::string&) {
    SerialParallel serial;
    Outputs all = answer.instance.outputs(c.dtype);
    Outputs bare = answer.instance.outputs(c.dtype);
    run_forward(answer.instance, all.results(), serial);
    run_forward(answer.instance, {bare.o.tensor, {}, {}}, serial);
    expect_within("o", all.o, answer.want.o, answer.bound.o);
    expect_within("o alone", bare.o, answer.want.o, answer.bound.o);
    expect_rows_within(all, answer.want, answer.bound);
    expect_stats_within(all, answer.want, answer.bound);
    EXPECT_TRUE(all.o.padding_untouched());
    EXPECT_TRUE(bare.o.padding_untouched());
  });
}

class Forward : public EveryFormula {};

TEST_P(Forward, EveryStructureTypeAndTarget) {
  for (const Case& c : structure_cases(GetParam()))
    expect_right(c, supported_targets());
}

TEST_P(Forward, TheBoundIsSharp) {
  for (const DType type : {DType::kF32, DType::kF64}) {
    const Answer answer(Case{.n = 63,
                             .m = 97,
                             .d = 16,
                             .e = 16,
                             .formula = formula(),
                             .dtype = type,
                             .compute = type});
    const double ratio = type == DType::kF32 ? 0x1p-13 : 0x1p-42;
    expect_sharp("o", answer.want.o, answer.bound.o, ratio);
    const AttentionStats& want = answer.want.stats[0];
    const AttentionStats& bound = answer.bound.stats[0];
    EXPECT_LT(bound.weight_sq, ratio * want.weight_sq);
    EXPECT_LT(bound.jacobian_sq, ratio * want.jacobian_sq);
    EXPECT_LT(bound.max_abs_score, ratio * want.max_abs_score);
  }
}

TEST_P(Forward, AwkwardShapes) {
  for (const Case& c : awkward_cases(GetParam()))
    expect_right(c, targets_for(c));
}

// Of 8 or 16 lanes: a last strip that is split, by every structure; of 20 none
// is.
TEST_P(Forward, AVectorOfRowsAndFewMore) {
  int turn = GetParam();
  for (const std::int64_t n : {9, 17, 18, 20, 25, 49}) {
    for (int structure = 0; structure < kStructures; ++structure) {
      const Types types = kTypes[turn % 3];
      expect_right(with_structure(Case{.n = n,
                                       .m = 37,
                                       .d = 13,
                                       .e = 19,
                                       .formula = formula(),
                                       .dtype = types.dtype,
                                       .compute = types.compute},
                                  structure, turn),
                   supported_targets());
      ++turn;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formula, Forward, ::testing::Range(0, kFormulaCount));

// What people write in a 16-bit type: scores, weights and output rounded to it,
// each sum in f32.
class Plain {
 public:
  Plain(const Case& c, const Instance& instance)
      : c_(c), in_(instance.inputs()), f_(instance.config().activation) {}

  double output(std::int64_t i, std::int64_t x) const {
    const auto scale =
        static_cast<float>(1 / std::sqrt(static_cast<double>(c_.d)));
    std::vector<float> weight;
    float sum = 0, o = 0;
    for (std::int64_t j = 0; j < c_.m; ++j) {
      float s = 0;
      for (std::int64_t y = 0; y < c_.d; ++y)
        s += get(in_.q, i, y) * get(in_.k, j, y);
      weight.push_back(
          round(f_.weight(round(s * scale), static_cast<double>(c_.m))));
      sum += std::fabs(weight.back());
    }
    const double row = f_.divisor == Divisor::kSum
                           ? 1 / double{sum}
                           : f_.row_scale(static_cast<double>(c_.m));
    for (std::int64_t j = 0; j < c_.m; ++j)
      o += round(weight[static_cast<std::size_t>(j)] * row) * get(in_.v, j, x);
    return round(o);
  }

 private:
  static float get(const ConstTensor& t, std::int64_t i, std::int64_t x) {
    return static_cast<float>(at(t, {0, 0, i, x}));
  }
  float round(double x) const {
    const auto y = static_cast<float>(x);
    return c_.dtype == DType::kBF16 ? bf16_to_f32(f32_to_bf16(y))
                                    : f16_to_f32(f32_to_f16(y));
  }

  Case c_;
  AttentionInputs in_;
  Activation f_;
};

TEST_P(Forward, HalfPrecisionIsNoWorseThanPlain) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    const Case c{.n = 31,
                 .m = 75,
                 .d = 24,
                 .e = 5,
                 .formula = formula(),
                 .dtype = dtype};
    const Instance instance(c);
    const Outputs want = Answer::forward(instance);
    const Plain plain(c, instance);
    double plain_error = 0;
    for_each_index(want.o.tensor.size, [&](const Extents& x) {
      const double off = plain.output(x[2], x[3]) - at(want.o.tensor, x);
      plain_error = std::max(plain_error, std::fabs(off));
    });
    for_each_target(supported_targets(), [&](const std::string&) {
      SerialParallel serial;
      Outputs got = instance.outputs(dtype);
      run_forward(instance, got.results(), serial);
      for_each_index(want.o.tensor.size, [&](const Extents& x) {
        ASSERT_NEAR(at(got.o.tensor, x), at(want.o.tensor, x), 2 * plain_error);
      });
    });
  }
}

std::int64_t count_non_finite(const Buffer& o) {
  std::int64_t count = 0;
  for_each_index(o.tensor.size, [&](const Extents& x) {
    if (!std::isfinite(at(o.tensor, x))) ++count;
  });
  return count;
}

Outputs run(const Instance& instance, DType storage) {
  SerialParallel serial;
  Outputs out = instance.outputs(storage);
  run_forward(instance, out.results(), serial);
  return out;
}

TEST_P(Forward, NanInAQueryStaysInItsRow) {
  for (const Types& types : kTypes) {
    const Case c{.n = 41,
                 .m = 150,
                 .d = 9,
                 .e = 6,
                 .formula = formula(),
                 .dtype = types.dtype,
                 .compute = types.compute};
    SCOPED_TRACE(::testing::PrintToString(c));
    Instance instance(c);
    instance.q.set({0, 0, 7, 4}, kNaN);
    for_each_target(supported_targets(), [&](const std::string&) {
      const Outputs out = run(instance, c.dtype);
      expect_nan_where(out.o, [](const Extents& x) { return x[2] == 7; });
      EXPECT_EQ(out.stats[0].non_finite, c.e);
    });
  }
}

TEST_P(Forward, NanInAValueStaysInItsColumn) {
  for (const Types& types : kTypes) {
    const Case c{.n = 20,
                 .m = 130,
                 .d = 5,
                 .e = 7,
                 .formula = formula(),
                 .causal = Causal::kFirst,
                 .dtype = types.dtype,
                 .compute = types.compute};
    SCOPED_TRACE(::testing::PrintToString(c));
    Instance instance(c);
    instance.v.set({0, 0, 0, 3}, kNaN);
    for_each_target(supported_targets(), [&](const std::string&) {
      const Outputs out = run(instance, c.dtype);
      expect_nan_where(out.o, [](const Extents& x) { return x[3] == 3; });
      EXPECT_EQ(out.stats[0].non_finite, c.n);
    });
  }
}

// Scores of about 1e14, so x^3 overflows f32, and 16-bit types sooner.
TEST(ForwardExtremes, OverflowIsCountedAsItIsInTheOutput) {
  for (const Types& types : kTypes) {
    Case c{.heads = 2,
           .kv_heads = 2,
           .n = 35,
           .m = 140,
           .d = 8,
           .e = 5,
           .formula = "x^3/sqrt(N)",
           .dtype = types.dtype,
           .compute = types.compute};
    c.scale = types.compute == DType::kF32 ? 1e13 : 1e104;
    SCOPED_TRACE(::testing::PrintToString(c));
    const Instance instance(c);
    for_each_target(supported_targets(), [&](const std::string&) {
      const Outputs out = run(instance, c.dtype);
      const std::int64_t counted =
          out.stats[0].non_finite + out.stats[1].non_finite;
      EXPECT_EQ(counted, count_non_finite(out.o));
      EXPECT_GT(counted, 0);
    });
  }
}

// exp(1e4) is far beyond any type; only differences matter.
TEST(ForwardExtremes, SoftmaxOfHugeScoresIsRight) {
  for (const Types& types : kTypes) {
    for (const double scale : {1e4, -1e4}) {
      const Case c{.n = 40,
                   .m = 300,
                   .d = 1,
                   .e = 3,
                   .causal = Causal::kLast,
                   .dtype = types.dtype,
                   .compute = types.compute,
                   .scale = scale};
      SCOPED_TRACE(::testing::PrintToString(c));
      Instance instance(c);
      take_few_values(instance);
      const Outputs want = Answer::forward(instance);
      const Outputs bound = error_bound(instance, want, c.dtype);
      for_each_target(supported_targets(), [&](const std::string&) {
        const Outputs out = run(instance, c.dtype);
        EXPECT_EQ(out.stats[0].non_finite, 0);
        expect_within("o", out.o, want.o, bound.o);
      });
    }
  }
}

}  // namespace
}  // namespace polyattn::test
