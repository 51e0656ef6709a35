// The calibrated formulas have the norm of softmax, measured afresh.
#include "theory/calibrate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "theory/sample.h"

namespace polyattn::theory::calibrate_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

double rms_norm(const std::string& formula, const CalibrateOptions& o) {
  SerialParallel serial;
  const auto norms =
      sample_norms({.tokens = o.tokens,
                    .width = o.width,
                    .samples = 1000,
                    .seed = o.seed + 1,
                    .stream = Stream::kScores,
                    .cases = {{Activation::parse(formula), o.causal}}},
                   serial);
  return std::sqrt(summarize(norms[0].weight_sq).mean);
}

TEST(Calibrate, FormulasHaveTheNormOfSoftmax) {
  SerialParallel serial;
  for (const bool causal : {false, true}) {
    for (const int degree : {1, 3}) {
      const CalibrateOptions o{.tokens = 40,
                               .width = 32,
                               .degree = degree,
                               .causal = causal,
                               .samples = 1000};
      const Calibration c = calibrate(o, serial);
      const double softmax = rms_norm("softmax", o);
      // The relative error of a mean of 1000 is below 1 % at degree 3.
      EXPECT_NEAR(c.softmax_norm.value, softmax, 0.01 * softmax);
      EXPECT_NEAR(rms_norm(c.fixed.formula, o), softmax, 0.05 * softmax);
      EXPECT_NEAR(rms_norm(c.row.formula, o), softmax, 0.05 * softmax);
      EXPECT_TRUE(c.fixed.constant.interval.contains(c.fixed.constant.value));
      EXPECT_LT(c.fixed.constant.interval.high,
                1.02 * c.fixed.constant.interval.low);
      EXPECT_EQ(c.samples, 1000);
    }
  }
}

TEST(Calibrate, OfFullAttentionDiffersByTheRootOfN) {
  SerialParallel serial;
  const Calibration c = calibrate(
      {.tokens = 64, .width = 16, .degree = 2, .samples = 50}, serial);
  EXPECT_NEAR(c.row.constant.value, 8 * c.fixed.constant.value, 1e-12);
  EXPECT_EQ(Activation::parse(c.row.formula).divisor, Divisor::kSqrtN);
  EXPECT_EQ(Activation::parse(c.fixed.formula).divisor, Divisor::kOne);
}

TEST(Calibrate, TakesNormsFromElsewhere) {
  const CalibratedFormula f =
      calibrate_norms({.value = 6, .interval = {5, 8}}, 2, 3, true);
  EXPECT_DOUBLE_EQ(f.constant.value, 3);
  EXPECT_DOUBLE_EQ(f.constant.interval.low, 2.5);
  EXPECT_DOUBLE_EQ(f.constant.interval.high, 4);
  EXPECT_EQ(f.formula, "3 x^3/sqrt(N)");
  EXPECT_EQ(Activation::parse(f.formula), Activation::parse("3*x^3/sqrt(N)"));
}

TEST(Calibrate, WritesFormulasThatParseAtAnyScale) {
  for (const double norm : {1e-12, 1e-5, 0.01234567, 1.0, 123456.0, 1e12}) {
    for (const int degree : {1, 8}) {
      const CalibratedFormula f =
          calibrate_norms({.value = norm}, 1, degree, false);
      const Activation a = Activation::parse(f.formula);
      EXPECT_NEAR(a.coefficient[static_cast<std::size_t>(degree)], norm,
                  1e-3 * norm)
          << f.formula;
    }
  }
}

TEST(Calibrate, RefusesNormsThatAreNone) {
  for (const double bad : {0.0, -1.0, kInf, kNan}) {
    EXPECT_THROW(calibrate_norms({.value = bad}, 1, 2, false),
                 std::invalid_argument);
    EXPECT_THROW(calibrate_norms({.value = 1}, bad, 2, false),
                 std::invalid_argument);
  }
  SerialParallel serial;
  EXPECT_THROW(calibrate({.tokens = 0, .width = 8, .degree = 2}, serial),
               std::invalid_argument);
  EXPECT_THROW(calibrate({.tokens = 8, .width = 8, .degree = 9}, serial),
               std::invalid_argument);
}

}  // namespace
}  // namespace polyattn::theory::calibrate_test
