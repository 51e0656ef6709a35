#include "bench/table.h"

#include <gtest/gtest.h>

#include "support/message_of.h"

namespace polyattn::bench::table_test {
namespace {

using test::contains;

constexpr Goal kGoal{Bound::kAtLeast, 1.0};

Row row(double value, Measure measure = Measure::kSgemmRatio) {
  return {.name = "forward something",
          .measure = measure,
          .value = base::Spread{value, value - 0.01, value + 0.01},
          .goal = kGoal};
}

TEST(Table, FormatsValues) {
  EXPECT_EQ(format_value(row(1.03)), "1.03 (1.02–1.04) × sgemm");
  EXPECT_EQ(format_value(row(0.55, Measure::kTimeRatio)),
            "0.55 (0.54–0.56) × the time");
  EXPECT_EQ(format_value(row(2, Measure::kSpeedup)),
            "2.00 (1.99–2.01) × as fast");
  Row memory{.name = "", .unit = "MB", .value = exactly(8)};
  EXPECT_EQ(format_value(memory), "8.00 × less");
  memory.measure = Measure::kMegabytes;
  EXPECT_EQ(format_value(memory), "8.00 MB");
  EXPECT_EQ(format_value(Row{}), "not measured");
}

TEST(Table, FormatsGoals) {
  Row r;
  EXPECT_EQ(format_goal(r), "");
  r.goal = kGoal;
  EXPECT_EQ(format_goal(r), "≥ 1.00");
  r.measure = Measure::kMegabytes;
  r.goal = Goal{Bound::kAtMost, 64};
  EXPECT_EQ(format_goal(r), "≤ 64 MB");
}

TEST(Table, VerdictNamesWhatWasMissedAndWhatWasNotMeasured) {
  EXPECT_EQ(verdict({row(1.03), row(1.03)}), "\nAll 2 goals are reached.\n");
  Row absent = row(1);
  absent.name = "absent";
  absent.threads = 2;
  absent.value.reset();
  absent.note = "built without torch";
  EXPECT_EQ(verdict({row(1.03), row(0.97), absent}),
            "\nMissed 1 of 2 goals:\n  forward something, 1 thread: "
            "0.97 (0.96–0.98) × sgemm, must be ≥ 1.00\n"
            "\nNot measured:\n  absent, 2 threads: built without torch, must "
            "be ≥ 1.00\n");
  EXPECT_EQ(verdict({Row{}}), "");
}

TEST(Table, ShowsBothSidesInTheirUnit) {
  Row r = row(2, Measure::kSpeedup);
  r.ours = exactly(2);
  r.baseline = exactly(4);
  r.baseline_name = "eager";
  const std::string times = table_text({r}, false);
  EXPECT_TRUE(contains(times, "2.00 ms")) << times;
  EXPECT_TRUE(contains(times, "4.00 ms")) << times;
  EXPECT_TRUE(contains(times, "eager")) << times;
  EXPECT_FALSE(contains(times, "Gflop/s")) << times;
  r.items = 64;
  r.item_name = "images";
  EXPECT_TRUE(contains(table_text({r}, false), "32000 images/s"));
}

TEST(Table, ColoursOnlyWhereAsked) {
  EXPECT_FALSE(contains(table_text({row(1)}, false), "\033"));
  EXPECT_TRUE(contains(table_text({row(1)}, true), "\033"));
}

}  // namespace
}  // namespace polyattn::bench::table_test
