// What the benchmarks print, from rows made by hand.
#include "bench/report.h"

#include <gtest/gtest.h>

#include "bench/sgemm.h"
#include "support/message_of.h"

namespace polyattn::bench::report_test {
namespace {

using test::contains;

Row row(const std::string& name, double value, std::optional<Goal> goal) {
  return {.name = name,
          .threads = 2,
          .ours = base::Spread{2, 1.5, 2.5},
          .baseline = exactly(2 * value),
          .baseline_name = "our dense kernel",
          .value = base::Spread{value, value - 0.5, value + 0.5},
          .goal = goal};
}

TEST(Report, SaysWhenTheCoresWereBusy) {
  const auto text = [](double rate_of_two) {
    Row one = row("a", 1, {}), two = one;
    one.threads = 1;
    one.sgemm = exactly(100);
    two.sgemm = exactly(rate_of_two);
    return report_text({{one, two}}, false);
  };
  EXPECT_FALSE(contains(text(190), "note: sgemm gained")) << text(190);
  EXPECT_TRUE(
      contains(text(110), "note: sgemm gained only 1.10× from 2 threads"))
      << text(110);
}

TEST(Report, TextHasTheTableAndTheVerdict) {
  const Report report{{row("good", 7, Goal{Bound::kAtLeast, 5}),
                       row("bad", 4, Goal{Bound::kAtLeast, 5})}};
  const std::string text = report_text(report, false);
  EXPECT_TRUE(contains(text, "7.00 (6.50–7.50) × as fast")) << text;
  EXPECT_TRUE(contains(text, "Missed 1 of 2 goals:\n  bad, 2 threads: 4.00"))
      << text;
  EXPECT_FALSE(contains(text, "\033"));
  EXPECT_TRUE(contains(report_text(report, true), "\033"));
}

TEST(Report, TextListsWrongChoicesOfThePlanner) {
  const auto choice = [](const char* path, double loss) {
    return nlohmann::ordered_json{
        {"op", "forward"}, {"chosen", path}, {"loss", loss}};
  };
  Report report;
  report.planner = {choice("dense", 1.0), choice("linear", 1.5)};
  EXPECT_TRUE(contains(report_text(report, false), "1 of 1 above 1.10"));
  EXPECT_TRUE(contains(report_text(report, false), "linear   1.5"));
  report.planner = {choice("dense", 1.0)};
  EXPECT_FALSE(contains(report_text(report, false), "above 1.10"));
}

TEST(Report, JsonHasTheFieldsThatToolsReadAndComesBack) {
  Row memory = row("peak", 20, Goal{Bound::kAtMost, 8});
  memory.unit = "MB";
  memory.mode = "AVX2";
  memory.measure = Measure::kMegabytes;
  memory.extra_bytes = 3;
  Row absent = row("absent", 1, {});
  absent.value.reset();
  const auto json =
      report_json({{row("a", 7, Goal{Bound::kAtLeast, 5}), memory, absent}});
  EXPECT_FALSE(json["target"].get<std::string>().empty());
  EXPECT_FALSE(json["version"].get<std::string>().empty());
  EXPECT_FALSE(json.contains("planner"));
  const auto& first = json["rows"][0];
  EXPECT_EQ(first["name"], "a");
  EXPECT_EQ(first["threads"], 2);
  EXPECT_EQ(first["unit"], "ms");
  EXPECT_EQ(first["ours"], 2);
  EXPECT_EQ(first["ours_q1"], 1.5);
  EXPECT_EQ(first["baseline"], 14);
  EXPECT_EQ(first["baseline_name"], "our dense kernel");
  EXPECT_EQ(first["value"], 7);
  EXPECT_EQ(first["measure"], "speedup");
  EXPECT_EQ(first["bound"], "at least");
  EXPECT_EQ(first["goal"], 5);
  EXPECT_EQ(first["reached"], true);
  EXPECT_EQ(json["rows"][1]["reached"], false);
  for (const char* name : {"value", "goal", "bound", "reached"}) {
    EXPECT_TRUE(json["rows"][2][name].is_null()) << name;
  }
  EXPECT_EQ(report_json({rows_of(json)}), json);
  nlohmann::ordered_json broken;
  broken["rows"].push_back({{"name", "a"}});
  EXPECT_THROW(rows_of(broken), nlohmann::json::exception);
}

TEST(Report, JsonHasTheListsOfLinear) {
  Report report;
  report.accuracy.push_back({{"linear_rms", 1e-7}});
  report.overflow.push_back({{"linear", 1e8}, {"dense", nullptr}});
  report.planner.push_back({{"loss", 1}});
  const auto json = report_json(report);
  EXPECT_EQ(json["accuracy"][0]["linear_rms"], 1e-7);
  EXPECT_EQ(json["overflow"][0]["linear"], 1e8);
  EXPECT_TRUE(json["overflow"][0]["dense"].is_null());
  EXPECT_EQ(json["planner"][0]["loss"], 1);
  EXPECT_TRUE(json["rows"].empty());
  const std::string text = report_text(report, false);
  for (const char* part : {"linear rms", "1e-07", "1e+08", "no limit found"}) {
    EXPECT_TRUE(contains(text, part)) << part << text;
  }
}

}  // namespace
}  // namespace polyattn::bench::report_test
