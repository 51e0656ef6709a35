#include "bench/measurement.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace polyattn::bench {
namespace {

// 2 * 10 * 10 * (3 + 2) = 1000 flops.
Figure small_figure(Measure measure) {
  Figure f;
  f.measure = measure;
  f.subject.n = f.subject.m = 10;
  f.subject.d = 3;
  f.subject.e = 2;
  return f;
}

Measurement summary(const Figure& figure, const Samples& samples) {
  Measurement m;
  m.figure = figure;
  m.extra_bytes = 100;
  summarise(samples, m);
  return m;
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

TEST(Summarise, HoldsEachRoundAgainstItsNeighbours) {
  Samples samples;
  samples.seconds = {1e-6, 2e-6, 4e-6};  // 1, 0.5 and 0.25 Gflop/s
  samples.sgemm = {2, 2, 0.5, 0.5};      // means 2, 1.25, 0.5
  Figure figure = small_figure(Measure::kSgemmRatio);
  figure.goal = Goal{Bound::kAtLeast, 0.5};
  const Measurement m = summary(figure, samples);
  EXPECT_DOUBLE_EQ(m.gflops.median, 0.5);
  ASSERT_TRUE(m.ratio_sgemm.has_value());
  EXPECT_DOUBLE_EQ(m.ratio_sgemm->median, 0.5);  // of 0.5, 0.4, 0.5
  EXPECT_EQ(m.reached, true);
}

TEST(Summarise, WithoutSgemmNothingIsReachedOrMissed) {
  Samples samples;
  samples.seconds = {1e-6};
  Figure figure = small_figure(Measure::kSgemmRatio);
  figure.goal = Goal{Bound::kAtLeast, 0.5};
  const Measurement m = summary(figure, samples);
  EXPECT_FALSE(m.sgemm || m.ratio_sgemm || m.value || m.reached);
}

TEST(Summarise, RatiosOfTwoCases) {
  Samples samples;
  samples.seconds = {1, 3, 2};
  samples.baseline = {2, 6, 4};
  samples.rival = {3, 9, 6};
  Figure figure = small_figure(Measure::kTimeRatio);
  figure.goal = Goal{Bound::kAtMost, 0.4};
  const Measurement time = summary(figure, samples);
  EXPECT_DOUBLE_EQ(time.value->median, 0.5);
  EXPECT_EQ(time.reached, false);
  EXPECT_DOUBLE_EQ(time.speedup->median, 3);
  figure.measure = Measure::kSpeedRatio;
  EXPECT_DOUBLE_EQ(summary(figure, samples).value->median, 2);
}

TEST(Summarise, MemoryIsTheLargerOfCountedAndSeen) {
  Samples samples;
  samples.seconds = {1};
  Measurement m;
  m.figure = small_figure(Measure::kExtraBytes);
  m.extra_bytes = 100;
  summarise(samples, m);
  EXPECT_EQ(m.value->median, 100);
  m.peak_bytes = 200;
  summarise(samples, m);
  EXPECT_EQ(m.value->median, 200);
}

}  // namespace
}  // namespace polyattn::bench
