// What `bench --linear` prints, from rows made by hand.
#include "bench/linear_report.h"

#include <gtest/gtest.h>

namespace polyattn::bench::linear_report_test {
namespace {

LinearRow row(const std::string& name, double value, Goal goal) {
  return {.name = name,
          .unit = "ms",
          .ours = 2,
          .rival = 2 * value,
          .rival_name = "our dense kernel",
          .value = base::Spread{value, value - 0.5, value + 0.5},
          .goal = goal};
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(LinearReport, GoalsMayBeLimits) {
  EXPECT_EQ(row("a", 5, {Bound::kAtLeast, 5}).reached(), true);
  EXPECT_EQ(row("a", 4.9, {Bound::kAtLeast, 5}).reached(), false);
  EXPECT_EQ(row("a", 64, {Bound::kAtMost, 64}).reached(), true);
  EXPECT_EQ(row("a", 65, {Bound::kAtMost, 64}).reached(), false);
  LinearRow none = row("a", 5, {Bound::kAtLeast, 5});
  none.value.reset();
  EXPECT_EQ(none.reached(), std::nullopt);
}

TEST(LinearReport, TextNamesWhatWasMissedAndWhatWasNotMeasured) {
  LinearReport report;
  report.rows = {row("good", 7, {Bound::kAtLeast, 5}),
                 row("bad", 4, {Bound::kAtLeast, 5}),
                 row("absent", 1, {Bound::kAtLeast, 200})};
  report.rows[2].value.reset();
  report.rows[2].note = "built without torch";
  const std::string text = linear_text(report, false);
  EXPECT_TRUE(holds(text, "7.00 (6.50–7.50) ×")) << text;
  EXPECT_TRUE(holds(text, "Missed 1 of 2 goals:\n  bad, threads: 1: 4.00"))
      << text;
  EXPECT_TRUE(holds(text,
                    "Not measured:\n  absent, threads: 1: built without "
                    "torch, must be ≥ 200.00 ×"))
      << text;
  EXPECT_FALSE(holds(text, "\033"));
  EXPECT_TRUE(holds(linear_text(report, true), "\033"));
  report.rows.resize(1);
  EXPECT_TRUE(holds(linear_text(report, false), "All 1 goals are reached."));
}

TEST(LinearReport, TextListsWrongChoicesOfThePlanner) {
  LinearReport report;
  const BenchCase c{.activation = Activation::parse("x^2/sqrt(N)"),
                    .n = 512,
                    .m = 512,
                    .d = 32,
                    .e = 32,
                    .path = Path::kAuto};
  report.planner = {{c, Path::kDense, 1, 2, 1, 2, 1.0},
                    {c, Path::kLinear, 1, 1.5, 1, 0.9, 1.5}};
  EXPECT_TRUE(holds(linear_text(report, false), "1 of 1 above 1.10"));
  EXPECT_TRUE(holds(linear_text(report, false), "1.50 ×"));
  report.planner.pop_back();
  EXPECT_FALSE(holds(linear_text(report, false), "above 1.10"));
}

TEST(LinearReport, JsonHasTheFieldsThatToolsRead) {
  LinearReport report;
  report.rows = {row("a", 7, {Bound::kAtLeast, 5})};
  report.accuracy = {{"x^2/sqrt(N)", 1024, 64, {1e-7, 4e-7}, {2e-7, 5e-7}}};
  report.overflow = {{"x^2/sqrt(N)", 64, "q and k", 1e8, {}}};
  report.planner = {{}};
  const auto json = linear_json(report);
  const auto& figure = json["figures"][0];
  EXPECT_EQ(figure["name"], "a");
  EXPECT_EQ(figure["unit"], "ms");
  EXPECT_EQ(figure["ours"], 2);
  EXPECT_EQ(figure["rival"], 14);
  EXPECT_EQ(figure["value"], 7);
  EXPECT_EQ(figure["value_unit"], "ratio");
  EXPECT_EQ(figure["bound"], "at least");
  EXPECT_EQ(figure["must_reach"], 5);
  EXPECT_EQ(figure["reached"], true);
  EXPECT_EQ(json["accuracy"][0]["linear_rms"], 1e-7);
  EXPECT_EQ(json["overflow"][0]["linear"], 1e8);
  EXPECT_TRUE(json["overflow"][0]["dense"].is_null());
  EXPECT_EQ(json["planner"][0]["loss"], 1);
  EXPECT_FALSE(json["target"].get<std::string>().empty());
}

}  // namespace
}  // namespace polyattn::bench::linear_report_test
