// Exponents: planted ones are found, and intervals cover them.
#include "theory/fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "theory/random.h"

namespace polyattn::theory::fit_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

constexpr double kLengths[] = {16, 32, 64, 128, 256, 512};

// 3 N^exponent, each norm off by a normal error.
std::vector<LengthNorm> planted(double exponent, double error, int sample) {
  Random random({11, Stream::kScores, 0, sample});
  std::vector<LengthNorm> norms;
  for (const double n : kLengths) {
    const double truth = 3 * std::pow(n, exponent);
    norms.push_back({n, truth * std::exp(error * random.normal()),
                     error > 0 ? error : 1e-9, truth});
  }
  return norms;
}

TEST(Exponent, OfAnExactPowerIsFound) {
  const Exponent e = fit_exponent(planted(0.73, 0, 0));
  EXPECT_NEAR(e.slope, 0.73, 1e-12);
  EXPECT_NEAR(e.expected, 0.73, 1e-12);
  EXPECT_EQ(e.degrees_of_freedom, 4);
}

// Of 2000 intervals of 95 % about 100 miss, or fewer: they widen with scatter,
// and never shrink below the error of the norms.
TEST(Exponent, IsCoveredByItsInterval) {
  int missed = 0;
  for (int sample = 0; sample < 2000; ++sample) {
    const Exponent e = fit_exponent(planted(0.5, 0.02, sample));
    if (!exponent_interval(e, 0.05).contains(0.5)) ++missed;
  }
  EXPECT_LT(missed, 120);
  EXPECT_GT(missed, 5);
}

TEST(Exponent, ThatIsWrongIsNotCovered) {
  const Exponent e = fit_exponent(planted(0.6, 0.01, 0));
  EXPECT_FALSE(exponent_interval(e, 0.01).contains(0.5));
}

// A curve that theory knows of: the slopes agree, and it is no scatter.
TEST(Exponent, OfAKnownCurveHasNoScatter) {
  std::vector<LengthNorm> norms;
  for (const double n : kLengths) {
    const double truth = n + 100;
    norms.push_back({n, 1.01 * truth, 1e-3, truth});
  }
  const Exponent e = fit_exponent(norms);
  EXPECT_NEAR(e.slope, e.expected, 1e-12);
  EXPECT_LT(e.slope, 0.7);
  EXPECT_LT(e.error, 1e-3);
  for (LengthNorm& norm : norms) norm.expected = 1;
  EXPECT_GT(fit_exponent(norms).error, 0.02);
}

TEST(Exponent, WeighsNormsByTheirErrors) {
  auto norms = planted(1, 0, 0);
  norms[3].norm *= 2;
  norms[3].relative_error = 1;
  EXPECT_NEAR(fit_exponent(norms).slope, 1, 1e-6);
}

TEST(Exponent, OfTwoLengthsHasTheirErrorAlone) {
  const std::vector<LengthNorm> norms{{10, 10, 0.1}, {1000, 1000, 0.1}};
  const Exponent e = fit_exponent(norms);
  EXPECT_NEAR(e.slope, 1, 1e-12);
  EXPECT_NEAR(e.error, 0.1 * std::sqrt(2) / std::log(100), 1e-12);
  const Interval interval = exponent_interval(e, 0.01);
  EXPECT_NEAR(interval.high - 1, 2.5758293 * e.error, 1e-6);
}

TEST(Exponent, NeedsTwoLengthsAndNumbersAboveZero) {
  const std::vector<LengthNorm> same{{8, 1, 0.1}, {8, 2, 0.1}};
  EXPECT_THROW(fit_exponent(same), std::invalid_argument);
  EXPECT_THROW(fit_exponent(std::vector<LengthNorm>{}), std::invalid_argument);
  for (const double bad : {0.0, -1.0, kInf, kNan}) {
    EXPECT_THROW(
        fit_exponent(std::vector<LengthNorm>{{8, bad, 0.1}, {16, 1, 0.1}}),
        std::invalid_argument);
    EXPECT_THROW(
        fit_exponent(std::vector<LengthNorm>{{8, 1, bad}, {16, 1, 0.1}}),
        std::invalid_argument);
  }
}

}  // namespace
}  // namespace polyattn::theory::fit_test
