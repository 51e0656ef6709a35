// Dropout in the core: the generator, what it keeps, and that every kernel
// keeps the same.
//
// How often a right generator would fail: the bounds are Hoeffding's, chosen
// such that all comparisons of a test together fail once in 10^9 seeds; and the
// seeds are fixed.
#include "core/dropout.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/compare_outputs.h"
#include "core/kernel_cases.h"
#include "core/problem.h"
#include "core/random_inputs.h"

namespace polyattn::test {
namespace dropout_test {

// What the sum of `count` independent bits may be off its expectation, in one
// of `comparisons`.
double hoeffding(double count, double comparisons) {
  return std::sqrt(count * std::log(2 * comparisons / 1e-9) / 2);
}

// The known answers of its authors, for the rounds that are taken here and for
// the usual ten.
TEST(Philox, KnownAnswers) {
  constexpr std::uint32_t kAll = 0xffffffff;
  const PhiloxBlock pi = {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344};
  const PhiloxKey more = {0xa4093822, 0x299f31d0};
  const PhiloxBlock all = {kAll, kAll, kAll, kAll};
  EXPECT_EQ(philox({}, {}, 7),
            (PhiloxBlock{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}));
  EXPECT_EQ(philox(all, {kAll, kAll}, 7),
            (PhiloxBlock{0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}));
  EXPECT_EQ(philox(pi, more, 7),
            (PhiloxBlock{0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a}));
  EXPECT_EQ(philox({}, {}, 10),
            (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(all, {kAll, kAll}, 10),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(pi, more, 10),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// 1 where the weight is kept, key by key.
std::vector<double> kept_row(const Dropout& dropout, std::int64_t b,
                             std::int64_t h, std::int64_t i,
                             std::int64_t keys) {
  std::vector<double> row;
  for (std::int64_t j = 0; j < keys; ++j)
    row.push_back(is_dropped(dropout, b, h, i, j) ? 0 : 1);
  return row;
}

TEST(KeptWeights, TheirShareIsThatAskedFor) {
  constexpr std::int64_t kKeys = 4096, kRows = 256;
  for (const double p : {0.01, 0.1, 0.5, 0.9}) {
    double kept = 0;
    for (std::int64_t i = 0; i < kRows; ++i)
      for (const double x : kept_row({.p = p, .seed = 11}, 1, 2, i, kKeys))
        kept += x;
    const double count = kKeys * kRows;
    EXPECT_NEAR(kept, (1 - p) * count, hoeffding(count, 4));
  }
}

// Every two rows, of other queries, heads, examples and seeds, and every row
// and the same one moved by up to 16 keys, agree in half of the keys.
TEST(KeptWeights, AreIndependent) {
  constexpr std::int64_t kKeys = 4096, kMoves = 16;
  std::vector<std::vector<double>> rows;
  for (const std::uint64_t seed : {0ULL, 1ULL, 2ULL, 1ULL << 32, ~0ULL})
    for (std::int64_t b = 0; b < 3; ++b)
      for (std::int64_t h = 0; h < 3; ++h)
        for (std::int64_t i = 0; i < 5; ++i)
          rows.push_back(kept_row({.p = 0.5, .seed = seed}, b, h, i, kKeys));
  const auto count = static_cast<double>(rows.size());
  const double allowed =
      hoeffding(kKeys, count * (count - 1) / 2 + count * kMoves);
  double worst = 0;
  const auto compare = [&](const std::vector<double>& x,
                           const std::vector<double>& y, std::int64_t move) {
    double agree = 0;
    for (std::int64_t j = 0; j + move < kKeys; ++j)
      agree += x[static_cast<std::size_t>(j)] ==
                       y[static_cast<std::size_t>(j + move)]
                   ? 1
                   : 0;
    worst = std::max(worst,
                     std::fabs(agree - static_cast<double>(kKeys - move) / 2));
  };
  for (std::size_t x = 0; x < rows.size(); ++x) {
    for (std::int64_t move = 1; move <= kMoves; ++move)
      compare(rows[x], rows[x], move);
    for (std::size_t y = 0; y < x; ++y) compare(rows[x], rows[y], 0);
  }
  EXPECT_LE(worst, allowed);
  EXPECT_LT(allowed, 0.1 * kKeys);
}

// Whole heads that are computed apart are those of the call for all of them.
TEST(KeptWeights, AreOfTheHeadsNumber) {
  const Dropout all{.p = 0.5, .seed = 5};
  Dropout apart = all;
  apart.first_head = 3;
  EXPECT_EQ(kept_row(apart, 1, 0, 7, 100), kept_row(all, 1, 3, 7, 100));
  EXPECT_NE(kept_row(apart, 1, 0, 7, 100), kept_row(all, 1, 0, 7, 100));
}

// Weights are all 1: with the identity for values the output is what is kept,
// and with the identity for dL/do so is dv, transposed.
void expect_the_same_kept(Case c) {
  c.formula = "1";
  c.e = c.m;
  SCOPED_TRACE(::testing::PrintToString(c));
  Instance instance(c);
  for (Buffer* one : {&instance.v, &instance.d_o})
    for_each_index(one->tensor.size, [&](const Extents& x) {
      one->set(x, x[2] == x[3] ? 1 : 0);
    });
  const Dropout dropout = instance.config().dropout;
  const auto factor = static_cast<float>(kept_factor(dropout));
  const auto want = [&](const Extents& x, std::int64_t i, std::int64_t j) {
    const bool seen = c.causal == Causal::kNone || j <= i;
    return seen && !is_dropped(dropout, x[0], x[1], i, j) ? factor : 0.0F;
  };
  for_each_target(supported_targets(), [&](const std::string&) {
    const Outputs out = run_kernels(instance, c.dtype);
    for_each_index(out.o.tensor.size, [&](const Extents& x) {
      ASSERT_EQ(static_cast<float>(at(out.o.tensor, x)), want(x, x[2], x[3]));
    });
    for_each_index(out.dv.tensor.size, [&](const Extents& x) {
      const float seen = x[3] < c.n ? want(x, x[3], x[2]) : 0.0F;
      ASSERT_EQ(static_cast<float>(at(out.dv.tensor, x)), seen);
    });
  });
}

// Lengths around strips, blocks and chunks of every target.
TEST(KeptWeights, AreThoseOfTheDefinitionInEveryKernel) {
  for (const std::int64_t n : {1, 2, 5, 17, 31, 33, 49, 64, 130})
    for (const Causal causal : {Causal::kNone, Causal::kFirst})
      for (const DType type : {DType::kF32, DType::kF64})
        expect_the_same_kept({.batch = 2,
                              .heads = 2,
                              .kv_heads = 2,
                              .n = n,
                              .m = n + (n % 3),
                              .causal = causal,
                              .dtype = type,
                              .compute = type,
                              .dropout = 0.4});
  for (const std::int64_t m : {402, 531})
    expect_the_same_kept({.n = 300, .m = m, .dropout = 0.7});
}

TEST(DropoutOfKernels, ThreadsAndStatisticsAreAsWithout) {
  for (const char* formula : {"softmax", "x^3/sqrt(N)", "x^3/sum"}) {
    Case c{.batch = 2,
           .heads = 4,
           .kv_heads = 2,
           .n = 300,
           .m = 270,
           .formula = formula,
           .bias = Extra::kHeads,
           .dropout = 0.2};
    const Instance dropped(c);
    c.dropout = 0;
    const Outputs got = run_kernels(dropped, c.dtype);
    const Outputs plain = run_kernels(Instance(c), c.dtype);
    EXPECT_TRUE(same_bits(got.rows, plain.rows));
    EXPECT_TRUE(same_bits(got.stats, plain.stats));
    EXPECT_FALSE(same_bits(got.o, plain.o));
    expect_same_on_threads(got, [&](Parallel& parallel) {
      return run_kernels(dropped, c.dtype, parallel);
    });
  }
}

TEST(DropoutOfKernels, RefusesWhatIsNoProbability) {
  const auto message = [](const Dropout& dropout, Path path) {
    const Instance instance(Case{.formula = "x^2/N", .path = path});
    AttentionConfig config = instance.config();
    config.dropout = dropout;
    Outputs out = instance.outputs(DType::kF32);
    try {
      attention_forward(instance.inputs(), config, out.results());
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message({.p = 1}, Path::kDense),
            "[attention_forward] dropout p 1 is not in [0, 1)");
  EXPECT_EQ(message({.p = -0.5}, Path::kDense),
            "[attention_forward] dropout p -0.5 is not in [0, 1)");
  EXPECT_EQ(message({.p = kNaN}, Path::kDense),
            "[attention_forward] dropout p nan is not in [0, 1)");
  EXPECT_EQ(message({.p = 0.5, .first_head = -1}, Path::kDense),
            "[attention_forward] dropout first_head -1 < 0");
  EXPECT_NE(message({.p = 0.5}, Path::kLinear).find("each weight"),
            std::string::npos);
  EXPECT_EQ(message({.p = 0.5}, Path::kAuto), "");
}

}  // namespace dropout_test
}  // namespace polyattn::test
