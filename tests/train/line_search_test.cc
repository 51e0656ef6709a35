#include "train/line_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace polyattn::train::line_search_test {

using Function = std::function<LinePoint(double)>;

// The two conditions, from their definition.
void expect_strong_wolfe(const LineSearchResult& found, const LinePoint& start,
                         const LineSearchOptions& options) {
  EXPECT_TRUE(found.fulfilled);
  EXPECT_LE(found.best.value,
            start.value + options.c1 * found.best.t * start.slope);
  EXPECT_LE(std::fabs(found.best.slope), options.c2 * std::fabs(start.slope));
}

LinePoint quadratic(double t) {  // minimum at 3
  return {.t = t, .value = (t - 3) * (t - 3), .slope = 2 * (t - 3)};
}

LinePoint waves(double t) {  // many minima
  return {.t = t,
          .value = -t / 10 - std::sin(2 * t) + t * t / 50,
          .slope = -0.1 - 2 * std::cos(2 * t) + t / 25};
}

TEST(LineSearch, FindsAPointThatFulfilsBothConditions) {
  for (const double c2 : {0.9, 0.1, 1e-3}) {
    for (const double first : {1e-4, 0.1, 1.0, 5.0, 1000.0}) {
      for (const Function& function : {Function(quadratic), Function(waves)}) {
        LineSearchOptions options;
        options.c2 = c2;
        options.evaluations = 60;
        const LinePoint start = function(0);
        const LineSearchResult found =
            search_line(function, start, first, options);
        expect_strong_wolfe(found, start, options);
        EXPECT_EQ(found.best.value, function(found.best.t).value);
      }
    }
  }
}

// The cubic of a parabola has its minimum.
TEST(LineSearch, TakesTheMinimumOfAParabolaAtOnce) {
  LineSearchOptions options;
  options.c2 = 1e-9;
  const LineSearchResult found =
      search_line(quadratic, quadratic(0), 7, options);
  EXPECT_EQ(found.evaluations, 2);
  EXPECT_NEAR(found.best.t, 3, 1e-12);
}

TEST(LineSearch, TakesTheFirstPointIfItWillDo) {
  const LineSearchResult found =
      search_line(quadratic, quadratic(0), 2.5, LineSearchOptions{});
  EXPECT_EQ(found.evaluations, 1);
  EXPECT_EQ(found.best.t, 2.5);
}

// Beyond 4 nothing is finite: the stretch is halved until it is.
TEST(LineSearch, HalvesTheStepWhereNothingIsFinite) {
  for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    std::vector<double> tried;
    const auto function = [&](double t) {
      tried.push_back(t);
      if (t > 4) return LinePoint{.t = t, .value = bad, .slope = 1};
      return quadratic(t);
    };
    const LineSearchOptions options;
    const LineSearchResult found =
        search_line(function, quadratic(0), 64, options);
    expect_strong_wolfe(found, quadratic(0), options);
    EXPECT_EQ(tried, (std::vector<double>{64, 32, 16, 8, 4}));
    EXPECT_FALSE(found.none_finite);
  }
}

TEST(LineSearch, ASlopeThatIsNotFiniteIsNoPointEither) {
  const auto function = [](double t) {
    LinePoint point = quadratic(t);
    if (t > 4) point.slope = std::nan("");
    return point;
  };
  const LineSearchResult found =
      search_line(function, quadratic(0), 5, LineSearchOptions{});
  EXPECT_EQ(found.best.t, 2.5);
}

TEST(LineSearch, SaysIfNothingWasFinite) {
  LineSearchOptions options;
  options.evaluations = 4;
  const LineSearchResult found = search_line(
      [](double t) {
        return LinePoint{.t = t, .value = std::nan(""), .slope = 0};
      },
      quadratic(0), 8, options);
  EXPECT_TRUE(found.none_finite);
  EXPECT_EQ(found.evaluations, 4);
  EXPECT_EQ(found.shortest_tried, 1);
  EXPECT_EQ(found.best.t, 0);
  EXPECT_EQ(found.best.value, 9);
}

// Down without an end: the lowest point that was seen.
TEST(LineSearch, EndsAfterSoManyEvaluations) {
  LineSearchOptions options;
  options.evaluations = 5;
  const auto function = [](double t) {
    return LinePoint{.t = t, .value = -t, .slope = -1};
  };
  const LineSearchResult found = search_line(function, function(0), 1, options);
  EXPECT_EQ(found.evaluations, 5);
  EXPECT_FALSE(found.fulfilled);
  EXPECT_GT(found.best.t, 1);
  EXPECT_EQ(found.best.value, -found.best.t);
}

// The slope is a lie: nothing is lower.
TEST(LineSearch, StaysWhereNothingIsLower) {
  LineSearchOptions options;
  options.shortest = 1e-6;
  const LinePoint start{.value = 1, .slope = -1};
  const LineSearchResult found = search_line(
      [](double t) { return LinePoint{.t = t, .value = 1 + t, .slope = 1}; },
      start, 1, options);
  EXPECT_EQ(found.best.t, 0);
  EXPECT_FALSE(found.fulfilled);
  EXPECT_LT(found.evaluations, options.evaluations);
}

}  // namespace polyattn::train::line_search_test
