#include "bench/row.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace polyattn::bench {
namespace {

// 2 * 10 * 10 * (3 + 2) = 1000 flops.
Row small_row(Measure measure) {
  Row row{.name = "small", .subject = BenchCase{}, .measure = measure};
  row.subject->n = row.subject->m = 10;
  row.subject->d = 3;
  row.subject->e = 2;
  row.extra_bytes = 100'000'000;
  return row;
}

Row summary(Row row, const Samples& samples) {
  summarise(samples, row);
  return row;
}

TEST(SpreadOf, MedianAndQuartiles) {
  const base::Spread odd = base::spread_of({5, 1, 3, 2, 4});
  EXPECT_DOUBLE_EQ(odd.median, 3);
  EXPECT_DOUBLE_EQ(odd.q1, 2);
  EXPECT_DOUBLE_EQ(odd.q3, 4);
  const base::Spread even = base::spread_of({4, 1, 3, 2});
  EXPECT_DOUBLE_EQ(even.median, 2.5);
  EXPECT_DOUBLE_EQ(even.q1, 1.75);
  EXPECT_DOUBLE_EQ(even.q3, 3.25);
}

TEST(SpreadOf, OneValueAndNone) {
  const base::Spread one = base::spread_of({7});
  EXPECT_EQ(one.median, 7);
  EXPECT_EQ(one.q1, 7);
  EXPECT_EQ(one.q3, 7);
  EXPECT_THROW(base::spread_of({}), std::invalid_argument);
}

TEST(Summarise, ComparesEachRoundWithItsNeighbours) {
  Samples samples;
  samples.ours = {1e-3, 2e-3, 4e-3};  // 1, 0.5 and 0.25 Gflop/s
  samples.sgemm = {2, 2, 0.5, 0.5};   // means 2, 1.25, 0.5
  Row row = small_row(Measure::kSgemmRatio);
  row.goal = Goal{Bound::kAtLeast, 0.5};
  row = summary(row, samples);
  EXPECT_DOUBLE_EQ(row.gflops->median, 0.5);
  ASSERT_TRUE(row.ratio_sgemm.has_value());
  EXPECT_DOUBLE_EQ(row.ratio_sgemm->median, 0.5);  // of 0.5, 0.4, 0.5
  EXPECT_EQ(row.reached(), true);
}

TEST(Summarise, WithoutSgemmNothingIsReachedOrMissed) {
  Samples samples;
  samples.ours = {1e-3};
  Row row = small_row(Measure::kSgemmRatio);
  row.goal = Goal{Bound::kAtLeast, 0.5};
  row = summary(row, samples);
  EXPECT_FALSE(row.sgemm || row.ratio_sgemm || row.value || row.reached());
}

TEST(Summarise, RatiosOfTwoCases) {
  Samples samples;
  samples.ours = {1, 3, 2};
  samples.baseline = {2, 6, 4};
  Row row = small_row(Measure::kTimeRatio);
  row.goal = Goal{Bound::kAtMost, 0.4};
  const Row time = summary(row, samples);
  EXPECT_DOUBLE_EQ(time.value->median, 0.5);
  EXPECT_EQ(time.reached(), false);
  EXPECT_FALSE(time.speedup.has_value());
  row.measure = Measure::kSpeedup;
  EXPECT_DOUBLE_EQ(summary(row, samples).value->median, 2);
  // The speed-up stands beside a value that is about sgemm.
  row.measure = Measure::kSgemmRatio;
  EXPECT_DOUBLE_EQ(summary(row, samples).speedup->median, 2);
}

TEST(Summarise, MemoryIsTheLargerOfCountedAndSeen) {
  Samples samples;
  samples.ours = {1};
  Row row = small_row(Measure::kMegabytes);
  EXPECT_EQ(summary(row, samples).value->median, 100);
  row.peak_bytes = 200'000'000;
  EXPECT_EQ(summary(row, samples).value->median, 200);
}

TEST(Row, GoalsMayBeLimits) {
  Row row{.name = "a", .value = exactly(5), .goal = Goal{Bound::kAtLeast, 5}};
  EXPECT_EQ(row.reached(), true);
  row.value = exactly(4.9);
  EXPECT_EQ(row.reached(), false);
  row.goal->bound = Bound::kAtMost;
  EXPECT_EQ(row.reached(), true);
  row.goal->value = 4.8;
  EXPECT_EQ(row.reached(), false);
  row.value.reset();
  EXPECT_EQ(row.reached(), std::nullopt);
  row.value = exactly(5);
  row.goal.reset();
  EXPECT_EQ(row.reached(), std::nullopt);
}

}  // namespace
}  // namespace polyattn::bench
