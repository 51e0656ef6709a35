#include "bench/bench_table.h"

#include <gtest/gtest.h>

namespace polyattn::bench {
namespace {

Measurement measurement(double value, Goal goal, Measure measure) {
  Measurement m;
  m.figure.name = "forward something";
  m.figure.measure = measure;
  m.figure.baseline_name = "full";
  m.figure.goal = goal;
  m.value = base::Spread{value, value - 0.01, value + 0.01};
  m.reached = reaches(goal, value);
  return m;
}

TEST(BenchTable, FormatsValues) {
  const Goal goal{Bound::kAtLeast, 1.0};
  EXPECT_EQ(format_value(measurement(1.03, goal, Measure::kSgemmRatio)),
            "1.03 (1.02–1.04) × sgemm");
  EXPECT_EQ(format_value(measurement(0.55, goal, Measure::kTimeRatio)),
            "0.55 (0.54–0.56) × time full");
  EXPECT_EQ(format_value(measurement(3.2e6, goal, Measure::kExtraBytes)),
            "3.20 MB extra");
  EXPECT_EQ(format_value(Measurement{}), "not available");
}

TEST(BenchTable, FormatsGoals) {
  Figure figure;
  EXPECT_EQ(format_goal(figure), "");
  figure.goal = Goal{Bound::kAtLeast, 1.0};
  EXPECT_EQ(format_goal(figure), "≥ 1.00");
  figure.measure = Measure::kExtraBytes;
  figure.goal = Goal{Bound::kAtMost, 64e6};
  EXPECT_EQ(format_goal(figure), "≤ 64 MB");
}

TEST(BenchTable, NamesWhatWasMissed) {
  const Goal goal{Bound::kAtLeast, 1.0};
  const auto good = measurement(1.03, goal, Measure::kSgemmRatio);
  const auto bad = measurement(0.97, goal, Measure::kSgemmRatio);
  const std::string all = bench_table({good, good}, {false, "machine"});
  EXPECT_EQ(all.find("machine\n"), 0U);
  EXPECT_NE(all.find("All 2 goals are reached."), std::string::npos);
  const std::string some = bench_table({good, bad}, {false, "machine"});
  EXPECT_NE(some.find("Missed 1 of 2 goals:\n  forward something, 1 thread: "
                      "0.97 (0.96–0.98) × sgemm, must be ≥ 1.00\n"),
            std::string::npos);
}

TEST(BenchTable, SaysWhenTheCoresWereBusy) {
  const auto table = [](double rate_of_two) {
    const Goal goal{Bound::kAtLeast, 1.0};
    auto one = measurement(1, goal, Measure::kSgemmRatio), two = one;
    one.sgemm = base::Spread{100, 100, 100};
    two.figure.subject.threads = 2;
    two.sgemm = base::Spread{rate_of_two, rate_of_two, rate_of_two};
    return bench_table({one, two}, {false, ""});
  };
  EXPECT_EQ(table(190).find("note:"), std::string::npos);
  EXPECT_NE(table(110).find("note: sgemm gained only 1.10× from 2 threads"),
            std::string::npos);
}

TEST(BenchTable, ColoursOnlyWhereAsked) {
  const auto m =
      measurement(1, Goal{Bound::kAtLeast, 1.0}, Measure::kSgemmRatio);
  EXPECT_EQ(bench_table({m}, {false, ""}).find('\033'), std::string::npos);
  EXPECT_NE(bench_table({m}, {true, ""}).find('\033'), std::string::npos);
}

}  // namespace
}  // namespace polyattn::bench
