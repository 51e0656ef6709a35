// Means, medians and their intervals: known values, and how often they cover
// what they should.
#include "theory/summary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "theory/random.h"

namespace polyattn::theory::summary_test {
namespace {

TEST(Summary, KnowsMeanDeviationAndSkewness) {
  const Summary s = summarize(std::vector<double>{0, 0, 0, 4});
  EXPECT_EQ(s.count, 4);
  EXPECT_DOUBLE_EQ(s.mean, 1);
  EXPECT_DOUBLE_EQ(s.deviation, 2);
  // Third moment 6, second 3.
  EXPECT_NEAR(s.skewness, 6 / std::pow(3.0, 1.5), 1e-12);
}

TEST(Summary, OfEqualValuesHasNoSpread) {
  const Summary s = summarize(std::vector<double>(10, 0.1));
  EXPECT_NEAR(s.mean, 0.1, 1e-15);
  EXPECT_NEAR(s.deviation, 0, 1e-15);
}

TEST(NormalQuantile, IsThatOfTables) {
  EXPECT_NEAR(normal_quantile(0.01), 2.5758293035489004, 1e-10);
  EXPECT_NEAR(normal_quantile(1e-7), 5.326723886384, 1e-8);
}

TEST(MeanInterval, OfASymmetricSampleIsStudents) {
  const Summary s = summarize(std::vector<double>{1, 2, 3, 4, 5});
  const Interval interval = mean_interval(s, 0.01);
  // t(4) at 99 %: 4.6041; deviation sqrt(2.5).
  const double half = 4.604094871 * std::sqrt(2.5 / 5);
  EXPECT_NEAR(interval.low, 3 - half, 1e-6);
  EXPECT_NEAR(interval.high, 3 + half, 1e-6);
}

TEST(MeanInterval, OfASkewedSampleReachesFurtherUp) {
  const Summary s = summarize(std::vector<double>{1, 1, 1, 1, 1, 1, 2, 5});
  const Interval interval = mean_interval(s, 0.01);
  EXPECT_GT(interval.high - s.mean, 1.5 * (s.mean - interval.low));
}

// 3000 samples of 100 log-normal values: an interval of 95 % must miss the mean
// in 150, give or take 12 (one deviation). Student's alone misses many more.
TEST(MeanInterval, CoversTheMeanOfSkewedValues) {
  constexpr int kSamples = 3000;
  const double mean = std::exp(0.5 * 0.8 * 0.8);
  int missed = 0, missed_by_student = 0;
  for (int sample = 0; sample < kSamples; ++sample) {
    Random random({7, Stream::kScores, 100, sample});
    std::vector<double> values(100);
    for (double& value : values) value = std::exp(0.8 * random.normal());
    Summary s = summarize(values);
    if (!mean_interval(s, 0.05).contains(mean)) ++missed;
    s.skewness = 0;
    if (!mean_interval(s, 0.05).contains(mean)) ++missed_by_student;
  }
  EXPECT_GT(missed, 100);
  EXPECT_LT(missed, 210);
  EXPECT_LT(missed, missed_by_student);
}

TEST(Summary, SpeaksForItselfUnlessItsTailsAreHeavyOrItIsSmall) {
  std::vector<double> tame, heavy;
  Random random({1, Stream::kScores, 0, 0});
  for (int i = 0; i < 1000; ++i) {
    const double z = random.normal();
    tame.push_back(std::exp(0.3 * z));
    heavy.push_back(std::exp(3 * z));
  }
  EXPECT_TRUE(speaks_for_itself(summarize(tame)));
  EXPECT_FALSE(speaks_for_itself(summarize(heavy)));
  tame.resize(99);
  EXPECT_FALSE(speaks_for_itself(summarize(tame)));
}

TEST(RobustMean, IsTheMeanOfTameValues) {
  std::vector<double> values(4000);
  Random random({1, Stream::kScores, 0, 0});
  for (double& value : values) value = 3 + random.normal();
  const Summary s = summarize(values);
  EXPECT_NEAR(robust_mean(values, 1, 1e-7), s.mean, 1e-3);
  EXPECT_NEAR(robust_half_width(1, 4000, 1e-7), 5.8 / std::sqrt(4000), 2e-3);
}

TEST(RobustMean, DoesNotFollowOneHugeValue) {
  std::vector<double> values(1000, 1);
  values[500] = 1e6;
  EXPECT_GT(summarize(values).mean, 1000);
  EXPECT_NEAR(robust_mean(values, 1, 1e-7), 1, 0.2);
}

TEST(RobustMean, WithoutVarianceIsTheMean) {
  const std::vector<double> values(100, 4);
  EXPECT_DOUBLE_EQ(robust_mean(values, 0, 1e-7), 4);
  EXPECT_GT(robust_least_count(1e-7), 2 * std::log(2e7));
}

TEST(Median, LiesBetweenOrderStatistics) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  const Median median = median_of(values, 0.01);
  EXPECT_DOUBLE_EQ(median.value, 50.5);
  ASSERT_TRUE(median.interval);
  // 12.9 ranks on either side, rounded outwards.
  EXPECT_DOUBLE_EQ(median.interval->low, 37);
  EXPECT_DOUBLE_EQ(median.interval->high, 64);
}

TEST(Median, OfFewValuesHasNoInterval) {
  EXPECT_FALSE(median_of(std::vector<double>(7, 1), 0.01).interval);
  EXPECT_TRUE(median_of(std::vector<double>(8, 1), 0.01).interval);
}

TEST(RandomNumbers, AreAFunctionOfTheirKey) {
  const RandomKey key{3, Stream::kCausal, 16, 5};
  Random a(key), b(key);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(a.normal(), b.normal());
  const double first = Random(key).uniform();
  for (const RandomKey& other : {RandomKey{4, Stream::kCausal, 16, 5},
                                 RandomKey{3, Stream::kScores, 16, 5},
                                 RandomKey{3, Stream::kCausal, 17, 5},
                                 RandomKey{3, Stream::kCausal, 16, 6}}) {
    EXPECT_NE(Random(other).uniform(), first);
  }
}

// Published results rest on them.
TEST(RandomNumbers, AreWhatTheyWere) {
  Random random(
      {.seed = 7, .stream = Stream::kCausal, .tokens = 64, .sample = 3});
  EXPECT_EQ(random.positive_uniform(), 0x1.0fa52d9c5238dp-1);
  // The last bit is the C library's affair.
  EXPECT_DOUBLE_EQ(random.normal(), 0x1.5ffd27b595a74p-2);
  EXPECT_DOUBLE_EQ(random.normal(), -0x1.ec8d69aa7292ap-3);
  EXPECT_DOUBLE_EQ(random.normal(), -0x1.b98fcb1e09945p-3);
  EXPECT_DOUBLE_EQ(random.heavy_tailed(), 0x1.9c483631697b2p-1);
}

TEST(RandomNumbers, HaveTheMomentsTheyShould) {
  Random random({1, Stream::kScores, 1, 0});
  std::vector<double> squares, fourths, heavy;
  for (int i = 0; i < 200000; ++i) {
    const double x = random.normal();
    squares.push_back(x * x);
    fourths.push_back(x * x * x * x);
    heavy.push_back(std::abs(random.heavy_tailed()));
  }
  EXPECT_TRUE(mean_interval(summarize(squares), 1e-5).contains(1));
  EXPECT_TRUE(mean_interval(summarize(fourths), 1e-5).contains(3));
  // The quartile of t(3) is 0.76489, before the division by sqrt(3).
  const Median median = median_of(heavy, 1e-5);
  EXPECT_TRUE(median.interval->contains(0.7648923 / std::sqrt(3.0)));
}

}  // namespace
}  // namespace polyattn::theory::summary_test
