#include "augment/policy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace polyattn::augment::policy_test {
namespace {

// Magnitude 9 of 10 without a deviation: a single value, of either sign.
TEST(RandIncreasing, DrawsItsFifteenOperationsEachHalfOfTheTime) {
  const PolicyOptions options{.kind = PolicyKind::kRandIncreasing};
  base::Random random(3);
  std::map<Operation, int> seen;
  constexpr int kDraws = 30000;
  for (int i = 0; i < kDraws; ++i) {
    for (const Choice& choice : draw_policy(options, 200, 100, random)) {
      ++seen[choice.operation];
      const double m = choice.magnitude;
      switch (choice.operation) {
        case Operation::kRotate:
          ASSERT_NEAR(std::abs(m), 27, 1e-9);
          break;
        case Operation::kShearX:
        case Operation::kShearY:
          ASSERT_NEAR(std::abs(m), 0.27, 1e-9);
          break;
        case Operation::kTranslateX:
          ASSERT_NEAR(std::abs(m), 0.405 * 200, 1e-9);
          break;
        case Operation::kTranslateY:
          ASSERT_NEAR(std::abs(m), 0.405 * 100, 1e-9);
          break;
        case Operation::kPosterize:
          ASSERT_EQ(m, 1);  // 4 - floor(3.6)
          break;
        case Operation::kSolarize:
          ASSERT_EQ(m, 26);  // 256 - floor(230.4)
          break;
        case Operation::kSolarizeAdd:
          ASSERT_EQ(m, 99);
          break;
        case Operation::kColor:
        case Operation::kContrast:
        case Operation::kBrightness:
        case Operation::kSharpness:
          ASSERT_NEAR(std::abs(m - 1), 0.81, 1e-9);
          break;
        default:
          ASSERT_EQ(m, 0);
      }
    }
  }
  EXPECT_EQ(seen.size(), 16U);
  EXPECT_NEAR(seen.at(Operation::kIdentity), kDraws, 600);
  for (const auto& [operation, count] : seen) {
    if (operation == Operation::kIdentity) continue;
    EXPECT_NEAR(count, kDraws / 15, 250) << static_cast<int>(operation);
  }
}

TEST(RandIncreasing, ScattersAndStaysWithinItsScale) {
  const PolicyOptions options{.kind = PolicyKind::kRandIncreasing,
                              .operations = 1,
                              .magnitude = 9,
                              .deviation = 0.5};
  base::Random random(3);
  double sum = 0, squares = 0;
  int count = 0;
  for (int i = 0; i < 100000; ++i) {
    const Choice choice = draw_policy(options, 9, 9, random).at(0);
    if (choice.operation != Operation::kRotate) continue;
    const double level = std::abs(choice.magnitude) / 3;
    ASSERT_LE(level, 10);
    sum += level;
    squares += level * level;
    ++count;
  }
  // The cut at 10, two deviations away, takes 0.8 % of one from the mean.
  const double mean = sum / count;
  EXPECT_NEAR(mean, 9 - 0.0085 * 0.5, 0.04);
  EXPECT_NEAR(std::sqrt(squares / count - mean * mean), 0.49, 0.03);
}

TEST(Policy, OfNoneLeavesTheImage) {
  base::Random random(1);
  Image image{2, 1, 1, {3, 4}};
  augment({}, image, random);
  jitter({}, image, random);
  EXPECT_EQ(image.pixels, (std::vector<std::uint8_t>{3, 4}));
}

TEST(Policy, IsAFunctionOfTheRandomNumbers) {
  for (const PolicyKind kind :
       {PolicyKind::kRandAugment, PolicyKind::kRandIncreasing,
        PolicyKind::kTrivialWide}) {
    Image first = blank_image(16, 16, 3);
    for (std::size_t i = 0; i < first.pixels.size(); ++i) {
      first.pixels[i] = static_cast<std::uint8_t>(i);
    }
    Image second = first;
    base::Random a(5);
    base::Random b(5);
    for (int i = 0; i < 20; ++i) {
      augment({.kind = kind}, first, a);
      augment({.kind = kind}, second, b);
      jitter({.strength = 0.4, .hue = 0.1}, first, a);
      jitter({.strength = 0.4, .hue = 0.1}, second, b);
    }
    EXPECT_EQ(first.pixels, second.pixels);
  }
}

// Of one grey pixel brightness alone matters: the factor is from 0.6 to 1.4.
TEST(Jitter, DrawsItsFactorsEvenly) {
  base::Random random(1);
  int low = 255, high = 0;
  double sum = 0;
  for (int i = 0; i < 5000; ++i) {
    Image image{1, 1, 1, {100}};
    jitter({.strength = 0.4}, image, random);
    low = std::min<int>(low, image.pixels[0]);
    high = std::max<int>(high, image.pixels[0]);
    sum += image.pixels[0];
  }
  EXPECT_EQ(low, 60);
  EXPECT_EQ(high, 139);  // what is left of 139.99
  EXPECT_NEAR(sum / 5000, 99.5, 1);
}

}  // namespace
}  // namespace polyattn::augment::policy_test
