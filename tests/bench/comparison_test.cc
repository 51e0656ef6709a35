// Ours against a baseline: rounds, ratios, and the better of two baselines.
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "bench/timed.h"

namespace polyattn::bench {
namespace {

Row row(const std::string& name, double ratio) {
  return {.name = name,
          .threads = 2,
          .value = base::Spread{ratio, ratio - 0.1, ratio + 0.1}};
}

TEST(TakeTurns, TimesBothAndDividesTheBaselineByOurs) {
  int ours = 0, baseline = 0;
  const auto wait = [](int& calls, int ms) {
    ++calls;
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
  };
  Row r;
  summarise(take_turns({[&] { wait(ours, 1); }, [&] { wait(baseline, 30); }},
                       {3, 1e-9}),
            r);
  EXPECT_GE(ours, 5);
  EXPECT_GE(baseline, 5);
  EXPECT_GE(r.ours->median, 1);
  EXPECT_GE(r.baseline->median, 30);
  EXPECT_LE(r.value->q1, r.value->median);
  EXPECT_LE(r.value->median, r.value->q3);
  EXPECT_LE(r.value->q3, r.baseline->q3 * 2);
  EXPECT_GT(r.value->median, 1);
}

// Each is called twice at first, and once a round.
TEST(TakeTurns, TheOrderAlternatesBetweenTheLooksAtTheMachine) {
  std::string order;
  const Samples samples =
      take_turns({[&] { order += 'o'; }, [&] { order += 'b'; }}, {3, 0},
                 [&] { order += '|'; });
  EXPECT_EQ(order, "oobb|ob|bo|ob|");
  EXPECT_EQ(samples.ours.size(), 3U);
  EXPECT_EQ(samples.baseline.size(), 3U);
}

// Waiting is no work of the processor; a loop is.
TEST(SecondsOf, TheThreadsClockStandsWhileItWaits) {
  const auto wait = [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  };
  EXPECT_GE(seconds_of(wait, 1), 0.02);
  EXPECT_LT(seconds_of(wait, 1, Clock::kThread), 0.02);
  double sum = 0;
  const auto work = [&] {
    for (int i = 1; i < 1000000; ++i) sum += 1.0 / i;
  };
  EXPECT_GT(seconds_of(work, 1, Clock::kThread), 0);
  EXPECT_GT(sum, 1);
  EXPECT_EQ(clock_for(1), Clock::kThread);
  EXPECT_EQ(clock_for(2), Clock::kWall);
}

TEST(TakeTurns, ThereMayBeNoBaseline) {
  const Samples samples = take_turns({[] {}}, {2, 0});
  EXPECT_EQ(samples.ours.size(), 2U);
  EXPECT_TRUE(samples.baseline.empty());
}

TEST(BetterBaselines, TheBetterOneCounts) {
  const auto better = better_baselines({row("a", 2), row("b", 1)},
                                       {row("a", 1.2), row("b", 3)});
  ASSERT_EQ(better.size(), 2u);
  EXPECT_EQ(better[0].value->median, 1.2);
  EXPECT_EQ(better[1].value->median, 1);
}

TEST(BetterBaselines, RowsThatDifferAreNotCompared) {
  EXPECT_THROW(better_baselines({row("a", 2)}, {row("b", 2)}),
               std::invalid_argument);
  EXPECT_THROW(better_baselines({row("a", 2)}, {}), std::invalid_argument);
}

}  // namespace
}  // namespace polyattn::bench
