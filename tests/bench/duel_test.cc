// Rows of ours against a rival: ratios, goals, JSON there and back, the table.
#include "bench/duel.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <thread>

namespace polyattn::bench {
namespace {

DuelRow row(const std::string& name, double ratio,
            std::optional<double> target) {
  DuelRow r;
  r.name = name;
  r.rival = "eager";
  r.threads = 2;
  r.ours = {2, 1.5, 2.5};
  r.theirs = {2 * ratio, 1.5 * ratio, 2.5 * ratio};
  r.ratio = {ratio, ratio - 0.1, ratio + 0.1};
  r.target = target;
  return r;
}

TEST(Duel, ReachedComparesTheMedianWithTheTarget) {
  EXPECT_EQ(row("a", 1.8, 1.8).reached(), true);
  EXPECT_EQ(row("a", 1.79, 1.8).reached(), false);
  EXPECT_EQ(row("a", 1.79, std::nullopt).reached(), std::nullopt);
}

TEST(Duel, TimesBothAndDividesTheRivalByOurs) {
  int ours = 0, theirs = 0;
  const auto wait = [](int& calls, int ms) {
    ++calls;
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
  };
  DuelRow r;
  time_duel({[&] { wait(ours, 1); }, [&] { wait(theirs, 30); }}, {3, 1e-9}, r);
  EXPECT_GE(ours, 5);
  EXPECT_GE(theirs, 5);
  EXPECT_GE(r.ours.median, 1);
  EXPECT_GE(r.theirs.median, 30);
  EXPECT_LE(r.ratio.q1, r.ratio.median);
  EXPECT_LE(r.ratio.median, r.ratio.q3);
  EXPECT_LE(r.ratio.q3, r.theirs.q3 * 2);
  EXPECT_GT(r.ratio.median, 1);
}

TEST(Duel, TheBetterRivalCounts) {
  const auto better = better_rivals({row("a", 2, 1.5), row("b", 1, 1.5)},
                                    {row("a", 1.2, 1.5), row("b", 3, 1.5)});
  ASSERT_EQ(better.size(), 2u);
  EXPECT_EQ(better[0].ratio.median, 1.2);
  EXPECT_EQ(better[1].ratio.median, 1);
}

TEST(Duel, RowsThatDifferAreNotCompared) {
  EXPECT_THROW(better_rivals({row("a", 2, {})}, {row("b", 2, {})}),
               std::invalid_argument);
  EXPECT_THROW(better_rivals({row("a", 2, {})}, {}), std::invalid_argument);
}

TEST(Duel, JsonHasTheNamesThatToolsReadAndComesBack) {
  DuelRow memory = row("peak", 20, 8);
  memory.unit = DuelUnit::kMegabytes;
  memory.mode = "AVX2";
  const auto json = duel_json({row("a", 2, 1.5), memory, row("c", 1, {})});
  EXPECT_EQ(json[0]["name"], "a");
  EXPECT_EQ(json[0]["threads"], 2);
  EXPECT_EQ(json[0]["ours_ms"], 2);
  EXPECT_EQ(json[0]["rival_ms"], 4);
  EXPECT_EQ(json[0]["ratio"], 2);
  EXPECT_EQ(json[0]["target"], 1.5);
  EXPECT_EQ(json[0]["reached"], true);
  EXPECT_TRUE(json[1]["ours_ms"].is_null());
  EXPECT_EQ(json[1]["ours_mb"], 2);
  EXPECT_TRUE(json[2]["target"].is_null());
  EXPECT_EQ(duel_json(duel_rows(json)), json);
  EXPECT_THROW(duel_rows({{{"name", "a"}}}), nlohmann::json::exception);
}

TEST(Duel, TableNamesWhatWasMissed) {
  const std::string text =
      duel_table({row("good", 2, 1.5), row("bad", 1.25, 1.5)}, false);
  EXPECT_NE(text.find("2.00× (1.90–2.10)"), std::string::npos) << text;
  EXPECT_NE(text.find("Missed 1 of 2 goals:\n  bad, threads: 2: 1.25×"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("\x1b["), std::string::npos);
  EXPECT_NE(duel_table({row("good", 2, 1.5)}, false).find("All 1 goals"),
            std::string::npos);
}

}  // namespace
}  // namespace polyattn::bench
