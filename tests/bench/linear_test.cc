// A real run of `bench linear`, with everything shortened to 64 tokens.
#include "bench/linear.h"

#include <gtest/gtest.h>

#include "bench/sgemm.h"
#include "polyattn/plan.h"

namespace polyattn::bench::linear_test {
namespace {

Options tiny() {
  Options options;
  options.longest = 64;
  options.repeats = 1;
  options.min_time = 0;
  return options;
}

TEST(Linear, WhatIsShortenedHasNoGoal) {
  const LinearSettings settings = linear_settings(tiny(), 1);
  EXPECT_EQ(settings.capped(65536), 64);
  EXPECT_EQ(settings.capped(10), 10);
  const Goal goal{Bound::kAtLeast, 5};
  EXPECT_FALSE(settings.goal_at(65, goal).has_value());
  EXPECT_TRUE(settings.goal_at(64, goal).has_value());
  EXPECT_TRUE(linear_settings({}, 1).goal_at(1 << 20, goal).has_value());
}

TEST(Linear, QuickKeepsTheShorterGoals) {
  Options options;
  options.quick = true;
  const LinearSettings settings = linear_settings(options, 2);
  EXPECT_EQ(settings.threads, 2);
  EXPECT_EQ(settings.capped(65536), 16384);
  EXPECT_LT(settings.run.rounds.rounds,
            linear_settings({}, 1).run.rounds.rounds);
  options.longest = 4096;
  EXPECT_EQ(linear_settings(options, 1).capped(65536), 4096);
}

TEST(Linear, EveryPartGivesItsRows) {
  // Fixed costs: neither read nor written, and the same on every machine.
  const PathCost cost{1, 1, 0.05, 1000, 1, 0.2, 0.05};
  set_path_costs(PathCosts{cost, cost});
  const Report report =
      run_tasks(linear_tasks(tiny()), base::ProgressStyle::kNone);
  // sgemm 2, and 4 of narrow heads, dense 5, memory 1, torch 1, decay 4,
  // decoding 6, planner 1.
  ASSERT_EQ(report.rows.size(), 24U);
  for (const Row& row : report.rows) {
    const bool sgemm = row.measure == Measure::kSgemmRatio && !have_sgemm();
    const bool torch = row.baseline_name.starts_with("libtorch");
    EXPECT_EQ(row.value.has_value(), !sgemm && !torch) << row.name;
    EXPECT_TRUE(row.value || !row.note.empty()) << row.name;
    EXPECT_FALSE(row.goal.has_value()) << row.name;
    EXPECT_GT(row.value.value_or(base::Spread{1, 1, 1}).median, 0) << row.name;
  }
  ASSERT_EQ(report.accuracy.size(), 4U);  // four degrees, one length
  for (const auto& row : report.accuracy) {
    EXPECT_EQ(row["N"], 64);
    EXPECT_GT(row["linear_rms"], 0) << row;
    EXPECT_LT(row["linear_rms"], 1e-5) << row;
    EXPECT_LT(row["dense_rms"], 1e-5) << row;
    EXPECT_LE(row["linear_rms"], row["linear_max"]);
  }
  ASSERT_EQ(report.overflow.size(), 8U);  // four degrees, two ways
  for (const auto& row : report.overflow) {
    // Degree 1 with q and k opposed has the features of its scores.
    EXPECT_TRUE(row["linear"].is_null() || row["linear"] > 1) << row;
  }
  EXPECT_FALSE(report.overflow[2]["linear"].is_null());  // x^2, both large
  for (const auto& row : report.planner) EXPECT_GE(row["loss"], 1);
  EXPECT_FALSE(report.planner.empty());
}

}  // namespace
}  // namespace polyattn::bench::linear_test
