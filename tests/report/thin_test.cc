// What thinning keeps, and how much.
#include "report/thin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

namespace polyattn::report {
namespace thin_test {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Columns = std::vector<std::size_t>;

// A smooth curve in column 0, its negative in column 1.
Rows curve(std::size_t count) {
  Rows rows(2);
  for (std::size_t i = 0; i < count; ++i) {
    const double value = std::sin(static_cast<double>(i) / 50);
    rows.add(static_cast<std::int64_t>(i), std::array{value, -value});
  }
  return rows;
}

Rows with_value(const Rows& rows, std::size_t at, std::size_t column,
                double value) {
  Rows changed(rows.width());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::array row{rows.value(i, 0), rows.value(i, 1)};
    if (i == at) row[column] = value;
    changed.add(rows.step(i), row);
  }
  return changed;
}

bool keeps(const std::vector<std::size_t>& kept, std::size_t row) {
  return std::binary_search(kept.begin(), kept.end(), row);
}

TEST(Thinned, FewRowsAreAllKept) {
  EXPECT_TRUE(thinned(curve(0), Columns{0, 1}, 100).empty());
  EXPECT_EQ(thinned(curve(1), Columns{0, 1}, 100), (Columns{0}));
  EXPECT_EQ(thinned(curve(100), Columns{0, 1}, 100).size(), 100U);
}

TEST(Thinned, NeverMoreThanTheLimit) {
  const Rows rows = curve(5000);
  for (const std::size_t limit : {2U, 3U, 5U, 10U, 99U, 500U, 4999U}) {
    const auto kept = thinned(rows, Columns{0, 1}, limit);
    EXPECT_LE(kept.size(), limit);
    EXPECT_GE(kept.size(), 2U);
    EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
    EXPECT_EQ(kept.front(), 0U);
    EXPECT_EQ(kept.back(), 4999U);
  }
  // Most of what is allowed is used.
  EXPECT_GE(thinned(rows, Columns{0, 1}, 500).size(), 250U);
}

TEST(Thinned, KeepsSmallestAndLargestOfEachColumn) {
  for (const std::size_t column : {0U, 1U}) {
    for (const double spike : {9.0, -9.0}) {
      const Rows rows = with_value(curve(5000), 1234, column, spike);
      EXPECT_TRUE(keeps(thinned(rows, Columns{0, 1}, 60), 1234))
          << column << " " << spike;
    }
  }
}

TEST(Thinned, KeepsTheExtremesOfEveryStretch) {
  const Rows rows = curve(4000);
  const std::size_t limit = 80;
  const auto kept = thinned(rows, Columns{0}, limit);
  // Of 39 stretches: two rows are the first and the last.
  const std::size_t stretches = (limit - 2) / 2;
  std::vector<double> smallest(stretches, kInfinity), found = smallest;
  const auto stretch = [&](std::size_t row) { return row * stretches / 4000; };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    double& value = smallest[stretch(i)];
    value = std::min(value, rows.value(i, 0));
  }
  for (const std::size_t row : kept) {
    double& value = found[stretch(row)];
    value = std::min(value, rows.value(row, 0));
  }
  EXPECT_EQ(found, smallest);
}

TEST(Thinned, KeepsWhatIsNotFinite) {
  for (const double value : {kNan, kInfinity, -kInfinity}) {
    const Rows rows = with_value(curve(5000), 2345, 1, value);
    EXPECT_TRUE(keeps(thinned(rows, Columns{0, 1}, 40), 2345)) << value;
    // In a column that does not decide it means nothing.
    EXPECT_FALSE(keeps(thinned(rows, Columns{0}, 8), 2345)) << value;
  }
}

TEST(Thinned, ManyThatAreNotFiniteLeaveRoomForTheOthers) {
  Rows rows(2);
  for (int i = 0; i < 3000; ++i) {
    rows.add(i, std::array{i % 2 == 0 ? kNan : std::sin(i / 50.0), 0.0});
  }
  const auto kept = thinned(rows, Columns{0, 1}, 100);
  EXPECT_LE(kept.size(), 100U);
  const auto finite = std::count_if(
      kept.begin(), kept.end(),
      [&](std::size_t row) { return std::isfinite(rows.value(row, 0)); });
  EXPECT_GE(finite, 20);
  EXPECT_GE(static_cast<std::ptrdiff_t>(kept.size()) - finite, 20);
}

TEST(Thinned, NothingFiniteAtAll) {
  Rows rows(1);
  for (int i = 0; i < 1000; ++i) rows.add(i, std::array{kNan});
  const auto kept = thinned(rows, Columns{0}, 50);
  EXPECT_LE(kept.size(), 50U);
  EXPECT_EQ(kept.back(), 999U);
}

TEST(Thinned, UnevenStepsKeepTheLimit) {
  Rows rows(1);
  for (int i = 0; i < 1000; ++i) rows.add(i, std::array{std::sin(i / 9.0)});
  rows.add(std::int64_t{1} << 52, std::array{0.5});
  const auto kept = thinned(rows, Columns{0}, 50);
  EXPECT_LE(kept.size(), 50U);
  EXPECT_EQ(kept.back(), 1000U);
}

TEST(ThinTable, HoldsABoundedNumberOfManyRows) {
  constexpr std::size_t kCapacity = 200;
  ThinTable table(1, {0}, kCapacity);
  constexpr int kCount = 100'000;
  for (int i = 0; i < kCount; ++i) {
    const double value = i == 31'415   ? 99
                         : i == 27'182 ? -99
                         : i == 500    ? kNan
                                       : std::sin(i / 1000.0);
    ASSERT_TRUE(table.add(i + 1, std::array{value}));
    ASSERT_LT(table.rows().size(), kCapacity);
  }
  EXPECT_EQ(table.total(), static_cast<std::size_t>(kCount));
  std::set<std::int64_t> steps;
  for (std::size_t i = 0; i < table.rows().size(); ++i) {
    steps.insert(table.rows().step(i));
  }
  for (const int step : {1, 501, 27'183, 31'416, kCount}) {
    EXPECT_EQ(steps.count(step), 1U) << step;
  }
  // Old records are not thinner than new ones.
  const auto middle = std::distance(steps.begin(), steps.lower_bound(50'000));
  EXPECT_GE(middle, static_cast<std::ptrdiff_t>(steps.size()) / 4);
}

TEST(ThinTable, TakesAscendingStepsOnly) {
  ThinTable table(1, {0}, 10);
  EXPECT_TRUE(table.add(5, std::array{1.0}));
  EXPECT_FALSE(table.add(5, std::array{1.0}));
  EXPECT_FALSE(table.add(4, std::array{1.0}));
  EXPECT_EQ(table.total(), 1U);
}

}  // namespace thin_test
}  // namespace polyattn::report
