// The matched scale: its defining equation, closed forms, and where there is
// none.
#include "theory/matched.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "theory/gaussian_scores.h"

namespace polyattn::theory::matched_test {
namespace {

Match match(const std::string& formula, const MatchOptions& options) {
  return matched_gain(Activation::parse(formula), options);
}

double scale(const std::string& formula, std::int64_t tokens) {
  return match(formula, {.tokens = tokens}).scale;
}

TEST(Matched, HasTheNormOfSoftmaxTimesTheFactor) {
  for (const char* formula :
       {"x^3/sqrt(N)", "x^2/sqrt(N)", "x/sqrt(N)", "x^3/14", "x^3", "x^3/N",
        "sigmoid", "relu^2/sqrt(N)", "-2 relu", "x^3 - x/2"}) {
    for (const std::int64_t n : {16, 64, 256}) {
      for (const double factor : {0.3, 1.0, 1.2}) {
        const Match m = match(formula, {.tokens = n, .factor = factor});
        // A sigmoid has N/(N + 1) at s = 0 already.
        const bool none = formula == std::string("sigmoid") && factor == 0.3;
        ASSERT_EQ(m.reason.empty(), !none) << formula;
        if (none) continue;
        EXPECT_LT(m.scale, 1) << formula;
        EXPECT_NEAR(*m.norm, factor * m.softmax_norm, 1e-8) << formula;
        EXPECT_DOUBLE_EQ(m.gain, std::sqrt(m.scale));
        const auto sq = [&](const std::string& of) {
          return gaussian_weight_sq(Activation::parse(of), n, m.scale);
        };
        EXPECT_DOUBLE_EQ(*m.norm, std::sqrt(sq(formula)));
        EXPECT_DOUBLE_EQ(m.softmax_norm, std::sqrt(sq("softmax")));
      }
    }
  }
}

// c x^p/sqrt(N) on scores so small that softmax is 1: N c^2 (2p-1)!! s^(2p) =
// factor^2. What softmax really has is between 1 and e^(s^2).
TEST(Matched, TendsToTheClosedFormForSmallScales) {
  double double_factorial = 1;
  for (int p = 1; p <= kMaxDegree; ++p) {
    double_factorial *= 2 * p - 1;
    for (const double c : {1.0, 3.0}) {
      for (const double factor : {1e-6, 1.0}) {
        const std::string formula =
            std::to_string(c) + " x^" + std::to_string(p) + "/sqrt(N)";
        const double s =
            match(formula, {.tokens = 4096, .factor = factor}).scale;
        const double closed = std::pow(
            4096 * c * c * double_factorial / (factor * factor), -0.5 / p);
        EXPECT_GE(s, closed * (1 - 1e-8)) << formula;
        EXPECT_LE(s, closed * std::exp(s * s / (2 * p)) * (1 + 1e-8))
            << formula;
      }
    }
  }
}

TEST(Matched, ReproducesThePilot) {
  EXPECT_NEAR(scale("x^3/sqrt(N)", 64), 0.32, 0.005);
  EXPECT_NEAR(scale("x^3/sqrt(N)", 256), 0.25, 0.006);
  EXPECT_NEAR(scale("x^3/sqrt(N)", 4096), 0.16, 0.005);
  EXPECT_NEAR(scale("x^2/sqrt(N)", 64), 0.27, 0.005);
  EXPECT_NEAR(scale("x/sqrt(N)", 64), 0.125, 0.0015);
  // The gains that it trained with.
  EXPECT_NEAR(match("x^3/sqrt(N)", {.tokens = 64}).gain, 0.57, 0.005);
  EXPECT_NEAR(match("x^2/sqrt(N)", {.tokens = 64}).gain, 0.52, 0.005);
  EXPECT_NEAR(match("x^3/sqrt(N)", {.tokens = 128, .causal = true}).gain, 0.53,
              0.01);
}

TEST(Matched, ScaleDoesNotDependOnWhereScoresAreNow) {
  for (const char* formula : {"x^3/sqrt(N)", "sigmoid"}) {
    const double s = scale(formula, 64);
    for (const double now : {0.5, 2.0, 5.0}) {
      const Match m = match(formula, {.tokens = 64, .score_std = now});
      EXPECT_NEAR(m.scale, s, 1e-8 * s);
      EXPECT_NEAR(m.gain, std::sqrt(s / now), 1e-8);
    }
    // Smaller scores are left as they are.
    const Match small = match(formula, {.tokens = 64, .score_std = s / 2});
    EXPECT_EQ(small.scale, s / 2);
    EXPECT_EQ(small.gain, 1);
    EXPECT_EQ(small.reason, "its norm is not above the target");
    EXPECT_LT(*small.norm, small.softmax_norm);
  }
}

TEST(Matched, OfACausalMatrixIsThatOfItsLastRow) {
  for (const char* formula : {"x^3/sqrt(N)", "x^3", "sigmoid", "x/N"}) {
    const Match full = match(formula, {.tokens = 64});
    const Match last = match(formula, {.tokens = 64, .causal = true});
    EXPECT_EQ(full.scale, last.scale);
    EXPECT_DOUBLE_EQ(*full.norm, 8 * *last.norm);
    EXPECT_DOUBLE_EQ(full.softmax_norm, 8 * last.softmax_norm);
  }
}

// 1.1 (1 - x^2)/N has the squared norm 1.21 (1 - 2 s^2 + 3 s^4): above softmax
// for small scores and for large ones, below it between them.
TEST(Matched, IsTheLargestRootIfThereAreSeveral) {
  const Match two =
      match("(1.1 - 1.1 x^2)/N", {.tokens = 64, .score_std = 2.0});
  EXPECT_GT(two.scale, 1);
  EXPECT_NEAR(*two.norm, two.softmax_norm, 1e-8);
  // Just below the root the norm is below softmax, and far below it above.
  const auto excess = [](double s) {
    return gaussian_weight_sq(Activation::parse("(1.1 - 1.1 x^2)/N"), 64, s) -
           gaussian_weight_sq({}, 64, s);
  };
  EXPECT_LT(excess(0.9 * two.scale), 0);
  EXPECT_GT(excess(0.1), 0);
  // Between the roots there is nothing to shrink; below both, no scale.
  EXPECT_EQ(match("(1.1 - 1.1 x^2)/N", {.tokens = 64, .score_std = 0.9}).reason,
            "its norm is not above the target");
  EXPECT_EQ(match("(1.1 - 1.1 x^2)/N", {.tokens = 64, .score_std = 0.1}).reason,
            "its norm is above the target at every smaller scale");
}

struct Unmatched {
  const char* formula;
  const char* reason;
};

TEST(Matched, SaysWhyThereIsNone) {
  constexpr const char* kBelow = "its norm is not above the target";
  constexpr const char* kAbove =
      "its norm is above the target at every smaller scale";
  constexpr const char* kSum =
      "its rows are divided by their sums, as softmax's are";
  for (const Unmatched& u : {Unmatched{"x/N", kBelow},
                             {"(1 + x)/N", kBelow},
                             {"relu/N", kBelow},
                             {"relu^2/N", kBelow},
                             {"1/N", kBelow},
                             {"2/N", kAbove},
                             {"1 + x^3", kAbove},
                             // Above softmax by s^2, and equal at s = 0.
                             {"(1 + x + x^2/2)/N", kAbove},
                             {"sigmoid(x)", kAbove},
                             {"x^4/sum", kSum},
                             {"relu/sum", kSum},
                             {"softmax", "it is softmax"}}) {
    for (const std::int64_t n : {16, 4096}) {
      const Match m = match(u.formula, {.tokens = n});
      EXPECT_EQ(m.reason, u.reason) << u.formula << " N " << n;
      EXPECT_EQ(m.scale, 1);
      EXPECT_EQ(m.gain, 1);
      EXPECT_EQ(m.norm.has_value(), m.reason != kSum);
      EXPECT_GT(m.softmax_norm, 1.4);
    }
  }
  // A larger target can be met.
  EXPECT_LT(match("(1 + x + x^2/2)/N", {.tokens = 64, .factor = 1.1}).scale, 1);
}

TEST(Matched, FindsTinyScales) {
  const Match m = match("1e30 x", {.tokens = 64});
  EXPECT_NEAR(m.scale, 1 / 64e30, 1e-38);
  EXPECT_THROW(match("1e200 x", {.tokens = 64}), std::overflow_error);
}

std::string matched_refusal(const MatchOptions& options) {
  try {
    match("x^3", options);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(Matched, RefusesOptionsOutOfRange) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(matched_refusal({.tokens = 0}),
            "[matched_gain] tokens 0 is not in 1 .. 1000000");
  EXPECT_NE(matched_refusal({.tokens = 1'000'001}), "");
  EXPECT_EQ(matched_refusal({.tokens = 8, .score_std = 0}),
            "[matched_gain] score_std 0.000000 is not above 0 and at most 16");
  for (const double bad : {-1.0, 17.0, kNan, kInf}) {
    EXPECT_NE(matched_refusal({.tokens = 8, .score_std = bad}), "") << bad;
  }
  for (const double bad : {-1.0, 0.0, kNan, kInf}) {
    EXPECT_NE(matched_refusal({.tokens = 8, .factor = bad}), "") << bad;
  }
}

}  // namespace
}  // namespace polyattn::theory::matched_test
