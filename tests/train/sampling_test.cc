#include "train/sampling.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <vector>

namespace polyattn::train::sampling_test {

constexpr std::array<float, 4> kLogits = {1.0f, 3.0f, 2.0f, -1.0f};

Random make_random(std::uint64_t seed = 1) {
  return Random(seed, Stream::kSampling, 0);
}

TEST(DrawToken, TemperatureZeroTakesTheLikeliest) {
  Random random = make_random();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(draw_token(kLogits, {.temperature = 0}, random), 1);
  }
  const std::array<float, 3> tie = {2.0f, 2.0f, 1.0f};
  EXPECT_EQ(draw_token(tie, {.temperature = 0}, random), 0);
}

std::set<std::int64_t> drawn(const SamplingOptions& options) {
  Random random = make_random();
  std::set<std::int64_t> seen;
  for (int i = 0; i < 5000; ++i) {
    seen.insert(draw_token(kLogits, options, random));
  }
  return seen;
}

TEST(DrawToken, TopKAndTopPLeaveTheLikeliest) {
  EXPECT_EQ(drawn({}), (std::set<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(drawn({.top_k = 2}), (std::set<std::int64_t>{1, 2}));
  EXPECT_EQ(drawn({.top_k = 1}), (std::set<std::int64_t>{1}));
  EXPECT_EQ(drawn({.top_k = 99}), (std::set<std::int64_t>{0, 1, 2, 3}));
  // Shares: 0.655, 0.241, 0.089, 0.012.
  EXPECT_EQ(drawn({.top_p = 0.5}), (std::set<std::int64_t>{1}));
  EXPECT_EQ(drawn({.top_p = 0.7}), (std::set<std::int64_t>{1, 2}));
  EXPECT_EQ(drawn({.top_p = 1e-9}), (std::set<std::int64_t>{1}));
}

// Counts of 40000 draws lie within five standard deviations of what the softmax
// says.
TEST(DrawToken, FollowsTheSoftmax) {
  Random random = make_random();
  constexpr int kDraws = 40000;
  std::array<int, 4> counts{};
  for (int i = 0; i < kDraws; ++i) {
    ++counts[static_cast<std::size_t>(
        draw_token(kLogits, {.temperature = 0.7}, random))];
  }
  double sum = 0;
  for (const float logit : kLogits) sum += std::exp(logit / 0.7);
  for (std::size_t i = 0; i < 4; ++i) {
    const double share = std::exp(kLogits[i] / 0.7) / sum;
    EXPECT_NEAR(counts[i], kDraws * share,
                5 * std::sqrt(kDraws * share * (1 - share)) + 1);
  }
}

TEST(DrawToken, TheSeedDecides) {
  std::array<std::vector<std::int64_t>, 3> texts;
  for (std::size_t i = 0; i < 3; ++i) {
    Random random = make_random(i == 2 ? 9 : 1);
    for (int j = 0; j < 50; ++j) {
      texts[i].push_back(draw_token(kLogits, {}, random));
    }
  }
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_NE(texts[0], texts[2]);
}

}  // namespace polyattn::train::sampling_test
