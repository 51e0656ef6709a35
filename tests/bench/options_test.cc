#include "bench/options.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/program.h"

namespace polyattn::bench {
namespace {

Options grid() {
  Options options;
  options.grid = true;
  return options;
}

std::int64_t count(const std::vector<Figure>& figures, auto&& predicate) {
  return std::count_if(figures.begin(), figures.end(), predicate);
}

TEST(Flops, FollowTheIssue) {
  BenchCase c;
  c.h = c.g = 3;
  c.n = 7;
  c.m = 11;
  c.d = c.e = 5;
  EXPECT_EQ(flops_of(c), 3 * 4 * 7 * 11 * 5);
  c.op = Op::kBackward;
  EXPECT_EQ(flops_of(c), 3 * 10 * 7 * 11 * 5);
  c.causal = Causal::kLast;
  EXPECT_EQ(flops_of(c), 3 * 5 * 7 * 11 * 5);
  c.e = 2;
  EXPECT_EQ(flops_of(c), 3 * 7 * 11 * (3 * 5 + 2 * 2));
}

TEST(Goals, BoundsIncludeTheirValue) {
  EXPECT_TRUE(reaches({Bound::kAtLeast, 1.0}, 1.0));
  EXPECT_FALSE(reaches({Bound::kAtLeast, 1.0}, 0.99));
  EXPECT_TRUE(reaches({Bound::kAtMost, 0.58}, 0.58));
  EXPECT_FALSE(reaches({Bound::kAtMost, 0.58}, 0.59));
}

TEST(StandardFigures, CoverTheTable) {
  const auto figures = standard_figures({1, 2});
  const auto with = [&](Measure measure, Op op, std::int64_t n,
                        std::int64_t d) {
    return count(figures, [&](const Figure& f) {
      return f.measure == measure && f.subject.op == op && f.subject.n == n &&
             f.subject.d == d && f.goal.has_value();
    });
  };
  for (const std::int64_t n : {384, 4096}) {
    EXPECT_EQ(with(Measure::kSgemmRatio, Op::kForward, n, 64), 2) << n;
  }
  // From memory and in the cache.
  for (const std::int64_t n : {49, 65, 197}) {
    for (const Op op : {Op::kForward, Op::kBackward}) {
      EXPECT_EQ(with(Measure::kSgemmRatio, op, n, 64), 4) << n;
    }
  }
  // Cubic and softmax.
  EXPECT_EQ(with(Measure::kSgemmRatio, Op::kForward, 1024, 64), 4);
  EXPECT_EQ(with(Measure::kSgemmRatio, Op::kBackward, 1024, 64), 4);
  EXPECT_EQ(with(Measure::kSgemmRatio, Op::kBackward, 4096, 64), 2);
  for (const std::int64_t d : {32, 128}) {
    EXPECT_EQ(with(Measure::kSgemmRatio, Op::kForward, 1024, d), 2) << d;
  }
  for (const std::int64_t d : {59, 111}) {
    EXPECT_EQ(with(Measure::kSgemmRatio, Op::kForward, 1025, d), 2) << d;
  }
  for (const Op op : {Op::kForward, Op::kBackward}) {
    EXPECT_EQ(with(Measure::kMegabytes, op, 65536, 64), 1);
    EXPECT_EQ(with(Measure::kTimeRatio, op, 4096, 64), 2);  // causal
    // bf16 with one and two threads, and two threads over one.
    EXPECT_EQ(with(Measure::kSpeedup, op, 1024, 64), 3);
    EXPECT_EQ(with(Measure::kSpeedup, op, 4096, 64), 1);  // B x H = 1
  }
  EXPECT_EQ(with(Measure::kTimeRatio, Op::kForward, 1024, 64), 2);  // stats
}

TEST(StandardFigures, PairsDifferInOneThing) {
  for (const Figure& f : standard_figures({1, 2})) {
    if (!f.baseline) continue;
    const BenchCase &a = f.subject, &b = *f.baseline;
    const int differences = static_cast<int>(a.causal != b.causal) +
                            static_cast<int>(a.dtype != b.dtype) +
                            static_cast<int>(a.stats != b.stats) +
                            static_cast<int>(a.threads != b.threads);
    EXPECT_EQ(differences, 1) << f.name;
    EXPECT_FALSE(f.baseline_name.empty());
  }
}

TEST(StandardFigures, OneThreadComparesNoThreads) {
  for (const Figure& f : standard_figures({1})) {
    EXPECT_EQ(f.subject.threads, 1) << f.name;
  }
}

TEST(ThreadCounts, FollowTheMachineUnlessTold) {
  Options options;
  EXPECT_EQ(thread_counts(options, 1), std::vector<int>({1}));
  EXPECT_EQ(thread_counts(options, 8), std::vector<int>({1, 2}));
  options.threads = {4, 1, 4};
  EXPECT_EQ(thread_counts(options, 1), std::vector<int>({4, 1}));
}

TEST(SelectFigures, QuickIsShort) {
  Options options;
  const auto all = select_figures(options, 2, 0);
  options.quick = true;
  const auto few = select_figures(options, 2, 0);
  EXPECT_FALSE(few.empty());
  EXPECT_LT(few.size(), all.size() / 3);
  EXPECT_LT(run_options(options).rounds.rounds, run_options({}).rounds.rounds);
}

TEST(SelectFigures, OnlyTakesRowsByName) {
  Options options;
  options.threads = {1};
  options.only = "H=192";
  const auto figures = select_figures(options, 2, 0);
  ASSERT_EQ(figures.size(), 6U);
  for (const Figure& f : figures) {
    const bool forward = f.subject.op == Op::kForward;
    EXPECT_EQ(f.subject.h, 192);
    EXPECT_EQ(f.goal.value().value, forward ? 0.85 : 0.75) << f.name;
  }
  options.only = "H=193";
  EXPECT_THROW(select_figures(options, 2, 0), base::UsageError);
  options.grid = true;
  EXPECT_THROW(select_figures(options, 2, 0), base::UsageError);
}

TEST(SelectFigures, GridIsTheProductOfTheLists) {
  Options options = grid();
  options.activations = {"softmax", "x^4/sum"};
  options.dtypes = {"f32", "bf16"};
  options.lengths = {10, 20, 30};
  options.widths = {8, 16};
  options.threads = {1, 2};
  EXPECT_EQ(select_figures(options, 2, 0).size(), 2U * 2 * 2 * 3 * 2 * 2);
}

TEST(SelectFigures, GridFillsInTheShape) {
  Options options = grid();
  options.ops = {"backward"};
  options.heads = 6;
  options.kv_heads = 2;
  options.lengths = {10};
  options.keys = 20;
  options.widths = {8};
  options.value_width = 4;
  options.causal = "last";
  options.threads = {3};
  const auto figures = select_figures(options, 2, 0);
  ASSERT_EQ(figures.size(), 1U);
  const BenchCase& c = figures[0].subject;
  EXPECT_EQ(describe(c),
            "backward x^3/sqrt(N) N=10 M=20 D=8 E=4 B·H=6 G=2 causal-last");
  EXPECT_EQ(c.threads, 3);
  EXPECT_FALSE(figures[0].goal.has_value());
}

TEST(SelectFigures, RefusesNonsense) {
  const auto select = [](auto&& change) {
    Options options = grid();
    change(options);
    return select_figures(options, 2, 1e9);
  };
  EXPECT_THROW(select([](auto& o) { o.kv_heads = 3; }), base::UsageError);
  EXPECT_THROW(select([](auto& o) { o.ops = {"sideways"}; }), base::UsageError);
  EXPECT_THROW(select([](auto& o) { o.dtypes = {"f8"}; }), base::UsageError);
  EXPECT_THROW(select([](auto& o) { o.causal = "middle"; }), base::UsageError);
  EXPECT_THROW(select([](auto& o) { o.lengths = {1 << 30}; }),
               base::UsageError);
  EXPECT_THROW(select([](auto& o) { o.activations = {"x^"}; }), FormulaError);
}

}  // namespace
}  // namespace polyattn::bench
