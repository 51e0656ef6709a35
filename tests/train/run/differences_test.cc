// Intervals of differences, by hand for small layouts.
#include "train/run/differences.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"
#include "base/statistics.h"
#include "made_up.h"

namespace polyattn::run {
namespace differences_test {

using test::MadeUp;
using test::make_up;

SeedFigures figures(const std::vector<double>& values) {
  SeedFigures result;
  for (std::size_t i = 0; i < values.size(); ++i) {
    result[static_cast<std::int64_t>(i) + 1] = values[i];
  }
  return result;
}

TEST(Differences, PoolTheVariance) {
  const Differences found =
      differences_to(0, {figures({0, 0}), figures({1, 3}), figures({2, 2})}, 0);
  EXPECT_EQ(found.basis.intervals, 2);
  EXPECT_EQ(found.basis.pooled, 3);
  EXPECT_EQ(found.basis.degrees, 2);
  // Residuals of the fit: 1/3, -1/3; -2/3, 2/3; 1/3, -1/3.
  EXPECT_NEAR(found.basis.variance, 2 * (4.0 / 3) / 2, 1e-12);
  // Three variances, the first of which may be four times the others.
  const double factor =
      base::maximum_modulus(0.95, 2, 2) * std::sqrt(5.0 / (2 * (4 + 2) / 3.0));
  for (const std::size_t row : {1U, 2U}) {
    EXPECT_EQ(found.rows[row].pairs, 2);
    EXPECT_EQ(found.rows[row].mean, 2);
    EXPECT_TRUE(found.rows[row].pooled);
    EXPECT_NEAR(found.rows[row].half_width.value(),
                factor * std::sqrt(4.0 / 3 / 2), 1e-12);
  }
  EXPECT_FALSE(found.rows[0].half_width);
}

TEST(Differences, OneAloneHasStudentsInterval) {
  const Differences found =
      differences_to(1, {figures({1, 2, 6}), figures({0, 0, 0})}, 0);
  EXPECT_EQ(found.rows[0].mean, 3);
  EXPECT_FALSE(found.rows[0].pooled);
  EXPECT_NEAR(found.rows[0].half_width.value(),
              base::student_t(0.95, 2) * std::sqrt(7.0 / 3), 1e-12);
  EXPECT_EQ(found.basis.pooled, 0);
  EXPECT_DOUBLE_EQ(found.basis.variance, 7);
}

TEST(Differences, UseThePairsThatThereAre) {
  std::vector<SeedFigures> rows = {figures({0, 0, 0}), figures({1, 3, 9}),
                                   figures({2, 2, 2})};
  rows[1].erase(3);
  rows[2][8] = 100;  // a seed that the reference has not
  const Differences found = differences_to(0, rows, 0);
  EXPECT_EQ(found.rows[1].pairs, 2);
  EXPECT_EQ(found.rows[1].mean, 2);
  EXPECT_EQ(found.rows[2].pairs, 3);
  EXPECT_EQ(found.basis.degrees, 1 + 2);
  EXPECT_GT(found.rows[1].half_width.value(), found.rows[2].half_width.value());
}

// Of two rows the fit leaves half the squares of their differences, and a seed
// that one row has alone leaves nothing.
TEST(Residual, OfTwoRowsIsThatOfTheirDifferences) {
  std::vector<SeedFigures> rows = {figures({5, 1, 7, 2}),
                                   figures({6, 3, 7, 9})};
  rows[1].erase(3);
  const Residual residual = residual_of(layout_of(0, rows), {0, 1});
  // Differences 1, 2, 7.
  EXPECT_NEAR(residual.squares, 0.5 * (1 + 4 + 49 - 100.0 / 3), 1e-12);
  EXPECT_EQ(residual.degrees, 2);
}

TEST(Residual, DoesNotSeeSeedsNorActivations) {
  base::Random random(7);
  std::vector<SeedFigures> rows(5), moved(5);
  for (int a = 0; a < 5; ++a) {
    for (int seed = 0; seed < 6; ++seed) {
      if (a > 0 && (a + seed) % 4 == 0) continue;
      const double noise = random.normal();
      rows[static_cast<std::size_t>(a)][seed] = noise;
      moved[static_cast<std::size_t>(a)][seed] = noise + 10 * a - 7 * seed;
    }
  }
  const std::vector<std::size_t> all = {0, 1, 2, 3, 4};
  const Residual one = residual_of(layout_of(0, rows), all);
  const Residual other = residual_of(layout_of(0, moved), all);
  EXPECT_NEAR(one.squares, other.squares, 1e-12 * one.squares * 100);
  EXPECT_EQ(one.degrees, other.degrees);
  int pairs = 0;
  for (std::size_t a = 1; a < 5; ++a) {
    pairs += static_cast<int>(rows[a].size()) - 1;
  }
  EXPECT_EQ(one.degrees, pairs);
}

std::vector<SeedFigures> with_noise(std::size_t noisy, double times) {
  base::Random random(3);
  MadeUp setting{.seeds = 4, .activations = 5, .deviations = {1, 1, 1, 1, 1}};
  setting.deviations[noisy] = times;
  return make_up(setting, random);
}

TEST(Differences, WhatIsOutOfLineIsNotPooled) {
  EXPECT_EQ(differences_to(0, with_noise(2, 1), 0).basis.pooled, 5);
  const Differences found = differences_to(0, with_noise(2, 100), 0);
  EXPECT_EQ(found.basis.pooled, 4);
  EXPECT_TRUE(found.rows[1].pooled);
  EXPECT_FALSE(found.rows[2].pooled);
  EXPECT_GT(found.rows[2].half_width.value(),
            20 * found.rows[1].half_width.value());
}

TEST(Differences, NothingIsPooledIfTheReferenceIsOutOfLine) {
  const Differences found = differences_to(0, with_noise(0, 100), 0);
  EXPECT_EQ(found.basis.pooled, 0);
  for (std::size_t row = 1; row < 5; ++row) {
    EXPECT_FALSE(found.rows[row].pooled);
    EXPECT_GT(found.rows[row].half_width.value(), 20);
  }
}

TEST(Differences, ManySeedsHaveTheirOwnVariance) {
  base::Random random(5);
  for (const int seeds : {9, 10}) {
    const Differences found = differences_to(
        0,
        make_up({.seeds = seeds, .activations = 4, .deviations = {1, 1, 1, 1}},
                random),
        0);
    EXPECT_EQ(found.basis.pooled, seeds == 9 ? 4 : 0);
    EXPECT_EQ(found.rows[1].pooled, seeds == 9);
  }
}

TEST(Differences, OneSeedHasNoInterval) {
  const Differences found = differences_to(
      0, {figures({1, 1}), figures({2}), {}, figures({3, 4})}, 0);
  EXPECT_EQ(found.basis.intervals, 1);
  EXPECT_EQ(found.rows[1].pairs, 1);
  EXPECT_FALSE(found.rows[1].half_width);
  EXPECT_EQ(found.rows[2].pairs, 0);
  EXPECT_TRUE(found.rows[3].half_width);
  EXPECT_EQ(differences_to(0, {{}, figures({1, 2})}, 0).basis.intervals, 0);
}

// Seeds that agree are known no better than one test example.
TEST(Differences, SeedsThatAgreeScatterByTheResolution) {
  const std::vector<SeedFigures> two = {figures({0.5, 0.6}),
                                        figures({0.6, 0.7})};
  EXPECT_NEAR(differences_to(0, two, 0).rows[1].half_width.value(), 0, 1e-12);
  EXPECT_NEAR(differences_to(0, two, 0.01).rows[1].half_width.value(),
              base::student_t(0.95, 1) * 0.01 / std::sqrt(6 * 2), 1e-12);
  std::vector<SeedFigures> many(6, two[0]);
  EXPECT_EQ(differences_to(0, many, 0).rows[1].half_width, 0);
  EXPECT_GT(differences_to(0, many, 0.01).rows[1].half_width.value(), 0.01);
  EXPECT_EQ(differences_to(0, many, 0.01).basis.pooled, 6);
}

TEST(Differences, HugeFiguresAreNoDifference) {
  const double huge = 1e200;
  const Differences found =
      differences_to(0,
                     {figures({1, 2}), figures({huge, -huge}),
                      figures({huge, huge}), figures({1, 1})},
                     0);
  for (const std::size_t row : {1U, 2U, 3U}) {
    const double mean = found.rows[row].mean;
    EXPECT_FALSE(std::abs(mean) > found.rows[row].half_width.value()) << row;
  }
}

TEST(SeedsToTell, HasALimit) {
  EXPECT_FALSE(seeds_to_tell(1e-6, {.intervals = 1, .variance = 1}));
  EXPECT_FALSE(seeds_to_tell(
      1,
      {.intervals = 1, .variance = std::numeric_limits<double>::infinity()}));
  EXPECT_EQ(seeds_to_tell(1, {.intervals = 1, .variance = 0}), 2);
}

}  // namespace differences_test
}  // namespace polyattn::run
