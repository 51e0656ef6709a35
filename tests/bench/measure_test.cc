// A real run, small enough that nobody waits for it.
#include "bench/measure.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "bench/check.h"
#include "bench/report.h"
#include "bench/sgemm.h"

namespace polyattn::bench {
namespace {

constexpr RunOptions kTiny{.rounds = {2, 0}, .sgemm_size = 16};

Figure tiny_figure(Op op, DType dtype = DType::kF32) {
  Figure f;
  f.subject = {.op = op,
               .activation = Activation::parse("x^3/sqrt(N)"),
               .dtype = dtype,
               .h = 2,
               .g = 2,
               .n = 16,
               .m = 16,
               .d = 8,
               .e = 8};
  f.name = describe(f.subject);
  return f;
}

TEST(Measure, JsonHasTheFieldsThatToolsRead) {
  Bench bench(kTiny);
  const auto list = report_json({{bench.measure(tiny_figure(Op::kForward)),
                                  bench.measure(tiny_figure(Op::kBackward))}})
                        .at("rows");
  ASSERT_EQ(list.size(), 2U);
  for (const auto& object : list) {
    for (const char* name : {"op",          "activation",
                             "dtype",       "B",
                             "H",           "N",
                             "M",           "D",
                             "E",           "causal",
                             "threads",     "path",
                             "gflops",      "sgemm_gflops",
                             "ratio_sgemm", "extra_bytes",
                             "G",           "stats",
                             "ours",        "name",
                             "goal",        "reached",
                             "baseline",    "speedup"}) {
      EXPECT_TRUE(object.contains(name)) << name;
    }
    EXPECT_EQ(object["N"], 16);
    EXPECT_EQ(object["causal"], "none");
    EXPECT_GT(object["gflops"].get<double>(), 0);
    EXPECT_EQ(object["ratio_sgemm"].is_null(), !have_sgemm());
    EXPECT_TRUE(object["reached"].is_null());
    EXPECT_EQ(object["speedup"].is_null(), !have_sgemm());
    EXPECT_EQ(object["baseline_name"], have_sgemm() ? "materialised" : "");
    // At least the row states: 2 heads of 16 rows.
    EXPECT_GE(object["extra_bytes"].get<std::int64_t>(),
              static_cast<std::int64_t>(32 * sizeof(RowState)));
  }
  EXPECT_EQ(list[0]["op"], "forward");
  EXPECT_EQ(list[1]["op"], "backward");
}

TEST(Measure, PairsHaveAValueAndAVerdict) {
  Figure figure = tiny_figure(Op::kForward);
  figure.measure = Measure::kTimeRatio;
  figure.baseline = figure.subject;
  figure.subject.stats = true;
  figure.goal = Goal{Bound::kAtMost, 1e9};
  const Row m = Bench(kTiny).measure(figure);
  ASSERT_TRUE(m.value && m.baseline);
  EXPECT_GT(m.value->median, 0);
  EXPECT_EQ(m.reached(), true);
  EXPECT_FALSE(m.speedup.has_value());
}

TEST(Measure, MemoryFigure) {
  Figure figure = tiny_figure(Op::kBackward);
  figure.measure = Measure::kMegabytes;
  const Row m = Bench(kTiny).measure(figure);
  EXPECT_GE(m.value->median, 1e-6 * static_cast<double>(*m.extra_bytes));
}

TEST(Measure, EveryTypeRuns) {
  for (const DType dtype :
       {DType::kF32, DType::kBF16, DType::kF16, DType::kF64}) {
    for (const Op op : {Op::kForward, Op::kBackward}) {
      EXPECT_NO_THROW(Bench(kTiny).measure(tiny_figure(op, dtype)))
          << name_of(op) << " " << polyattn::name_of(dtype);
    }
  }
}

TEST(Measure, RoundsDependOnTheFigure) {
  Figure figure = tiny_figure(Op::kForward);
  EXPECT_EQ(rounds_of(figure, kTiny), 2);
  figure.baseline = figure.subject;
  EXPECT_EQ(rounds_of(figure, kTiny), 3);
  figure.measure = Measure::kMegabytes;
  EXPECT_EQ(rounds_of(figure, kTiny), 1);
}

TEST(BenchCheck, FindsWrongResults) {
  for (const Causal causal : {Causal::kNone, Causal::kFirst, Causal::kLast}) {
    for (const std::int64_t keys : {3, 16, 29}) {
      BenchCase c = tiny_figure(Op::kForward).subject;
      c.causal = causal;
      c.m = keys;
      CaseRunner runner(c, 1);
      runner.run();
      EXPECT_NO_THROW(check_against_reference(runner)) << describe(c);
      const Tensor o = runner.o();
      store_element(o.data, o.dtype, element_count(o.size) - 1, 1e3);
      EXPECT_THROW(check_against_reference(runner), std::runtime_error)
          << describe(c);
    }
  }
}

TEST(BenchInputs, DoNotDependOnWhatIsCompared) {
  BenchCase c = tiny_figure(Op::kForward).subject;
  const CaseRunner a(c, 7);
  c.causal = Causal::kFirst;
  c.stats = true;
  const CaseRunner b(c, 7);
  for (std::int64_t i = 0; i < element_count(a.inputs().q.size); ++i) {
    ASSERT_EQ(load_element(a.inputs().q.data, DType::kF32, i),
              load_element(b.inputs().q.data, DType::kF32, i));
  }
}

}  // namespace
}  // namespace polyattn::bench
