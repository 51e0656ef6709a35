// Marks of known runs.
#include "report/ranking.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "support.h"

namespace polyattn::report {
namespace ranking_test {

using run::RunInfo;
using test::finished_run;

void add_runs(std::vector<RunInfo>& runs, const std::string& activation,
              const std::vector<double>& accuracies) {
  for (std::size_t i = 0; i < accuracies.size(); ++i) {
    runs.push_back(finished_run(activation, static_cast<std::int64_t>(i) + 1,
                                accuracies[i]));
  }
}

Ranking ranking_of(const std::vector<RunInfo>& runs) {
  return rank(run::compare_runs(runs));
}

TEST(Rank, MarksTheBestAndWhatCannotBeToldFromIt) {
  std::vector<RunInfo> runs;
  add_runs(runs, "softmax", {0.874, 0.873, 0.875});
  // Differences to the best: -0.4, +0.1, -0.4 points.
  add_runs(runs, "x^3/sqrt(N)", {0.870, 0.874, 0.871});
  add_runs(runs, "x", {0.80, 0.80, 0.80});
  const Ranking ranking = ranking_of(runs);
  ASSERT_EQ(ranking.rows.size(), 3U);
  EXPECT_TRUE(ranking.rows[0].best);
  EXPECT_TRUE(ranking.rows[0].like_best);
  EXPECT_FALSE(ranking.rows[1].best);
  EXPECT_TRUE(ranking.rows[1].like_best);
  EXPECT_FALSE(ranking.rows[2].like_best);
  EXPECT_TRUE(ranking.cautions.empty());
}

TEST(Rank, TheBestNeedNotBeTheBaseline) {
  std::vector<RunInfo> runs;
  add_runs(runs, "softmax", {0.5, 0.5});
  add_runs(runs, "x", {0.6, 0.6});
  const Ranking ranking = ranking_of(runs);
  EXPECT_FALSE(ranking.rows[0].like_best);
  EXPECT_TRUE(ranking.rows[1].best);
}

TEST(Rank, LowerIsBetterForBitsAndLoss) {
  std::vector<RunInfo> runs;
  add_runs(runs, "softmax", {0.3, 0.3});
  add_runs(runs, "x", {0.4, 0.4});
  for (RunInfo& run : runs) {
    run.result->bits_per_byte = run.result->accuracy;
    run.result->accuracy.reset();
  }
  EXPECT_TRUE(ranking_of(runs).rows[0].best);
  for (RunInfo& run : runs) {
    run.result = {.loss = *run.result->bits_per_byte};
  }
  EXPECT_TRUE(ranking_of(runs).rows[0].best);
}

TEST(Rank, OneSeedTellsNothing) {
  const Ranking ranking =
      ranking_of({finished_run("softmax", 1, 0.5), finished_run("x", 1, 0.9)});
  for (const Standing& row : ranking.rows) {
    EXPECT_FALSE(row.best);
    EXPECT_FALSE(row.like_best);
  }
  ASSERT_EQ(ranking.cautions.size(), 1U);
  EXPECT_NE(ranking.cautions[0].find("two finished seeds"), std::string::npos);
}

TEST(Rank, OneActivationIsNotTheBestOfAnything) {
  std::vector<RunInfo> runs;
  add_runs(runs, "softmax", {0.5, 0.6, 0.7});
  const Ranking ranking = ranking_of(runs);
  EXPECT_FALSE(ranking.rows[0].best);
  EXPECT_TRUE(ranking.cautions.empty());
}

TEST(Rank, NamesWhatHasTooFewSeedsInCommon) {
  std::vector<RunInfo> runs;
  add_runs(runs, "softmax", {0.8, 0.8});
  add_runs(runs, "x", {0.7, 0.7});
  runs.push_back(finished_run("x^3", 1, 0.75));
  runs.push_back(finished_run("x^3", 9, 0.75));
  const Ranking ranking = ranking_of(runs);
  EXPECT_TRUE(ranking.rows[0].best);
  EXPECT_FALSE(ranking.rows[2].like_best);
  ASSERT_EQ(ranking.cautions.size(), 1U);
  EXPECT_NE(ranking.cautions[0].find(": x^3."), std::string::npos);
}

TEST(Rank, OnlyFinishedAndFiniteRunsCount) {
  std::vector<RunInfo> runs;
  add_runs(runs, "softmax", {0.5, 0.5});
  add_runs(runs, "x", {0.9, 0.9, 0.4, 0.4});
  runs[2].state = run::RunState::kRunning;
  runs[3].result->loss = std::nan("");
  // Seeds 3 and 4 of x are finished; softmax has 1 and 2.
  const Ranking ranking = ranking_of(runs);
  EXPECT_FALSE(ranking.rows[0].best);
  EXPECT_FALSE(ranking.rows[1].best);
  EXPECT_EQ(ranking.cautions.size(), 1U);
}

TEST(Rank, SpellingsOfAFormulaAreOneRow) {
  std::vector<RunInfo> runs;
  add_runs(runs, "x^3/sqrt(N)", {0.5, 0.5});
  runs[1].activation = "x ^ 3 / sqrt( N )";
  add_runs(runs, "\"><script>", {0.4, 0.4});
  const Ranking ranking = ranking_of(runs);
  ASSERT_EQ(ranking.rows.size(), 2U);
  EXPECT_TRUE(ranking.rows[0].best);
  EXPECT_FALSE(ranking.rows[1].like_best);
}

TEST(Rank, EqualFiguresAreAlike) {
  std::vector<RunInfo> runs;
  add_runs(runs, "softmax", {0.5, 0.6});
  add_runs(runs, "x", {0.5, 0.6});
  const Ranking ranking = ranking_of(runs);
  EXPECT_TRUE(ranking.rows[0].best);
  EXPECT_TRUE(ranking.rows[1].like_best);
}

// One alone would be significant: Student's interval of two seeds is 12.7 x 0.1
// points wide. Among eight it must not be.
TEST(Rank, HoldsForAllRowsAtOnce) {
  std::vector<RunInfo> runs;
  add_runs(runs, "softmax", {0.5, 0.5});
  add_runs(runs, "x", {0.4850, 0.4870});
  EXPECT_FALSE(ranking_of(runs).rows[1].like_best);
  for (const int power : {2, 3, 4, 5, 6, 7}) {
    const double end = power % 2 == 0 ? 0.005 : -0.005;
    add_runs(runs, "x^" + std::to_string(power), {0.49 + end, 0.49 - end});
  }
  EXPECT_TRUE(ranking_of(runs).rows[1].like_best);
}

TEST(Rank, NothingFinished) {
  std::vector<RunInfo> runs;
  add_runs(runs, "softmax", {0.5});
  runs[0].state = run::RunState::kRunning;
  EXPECT_FALSE(ranking_of(runs).rows[0].best);
}

}  // namespace ranking_test
}  // namespace polyattn::report
