// Rows, tables and JSON of known runs.
#include "train/run/comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "runs.h"
#include "support.h"

namespace polyattn::run {
namespace comparison_test {

using test::add_runs;
using test::diverged_run;
using test::run_of;
using test::running_run;
using test::text_run;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<RunInfo> three_seeds() {
  std::vector<RunInfo> runs;
  add_runs(runs, "x^3/sqrt(N)", {0.870, 0.872, 0.871});
  add_runs(runs, "softmax", {0.874, 0.873, 0.875});
  return runs;
}

TEST(CompareRuns, PairsSeedsWithSoftmax) {
  const Comparison comparison = compare_runs(three_seeds());
  EXPECT_EQ(comparison.task, "cifar10");
  EXPECT_EQ(comparison.figure, Figure::kAccuracy);
  EXPECT_EQ(comparison.tokens, 64);
  EXPECT_EQ(comparison.test_count, 10000);
  ASSERT_EQ(comparison.rows.size(), 2U);
  EXPECT_EQ(comparison.baseline, 1U);
  const ComparisonRow& row = comparison.rows[0];
  EXPECT_EQ(row.activation, "x^3/sqrt(N)");
  EXPECT_EQ(row.finished, 3);
  EXPECT_EQ(row.pairs, 3);
  EXPECT_NEAR(row.figure.mean, 0.871, 1e-12);
  EXPECT_NEAR(row.figure.deviation, 0.001, 1e-12);
  // Differences -0.4, -0.1, -0.4 points; t of two degrees is 4.30265.
  EXPECT_NEAR(row.difference, -0.003, 1e-12);
  EXPECT_NEAR(row.half_width, 4.302652729749462 * 0.001, 1e-9);
  EXPECT_EQ(comparison.rows[1].difference, 0);
  EXPECT_EQ(comparison.rows[1].half_width, 0);
}

TEST(CompareRuns, OnlySeedsThatHaveBoth) {
  std::vector<RunInfo> runs = three_seeds();
  runs[1] = diverged_run("x^3/sqrt(N)", 2);
  runs.push_back(run_of("x^3/sqrt(N)", 9, 0.5));
  const Comparison comparison = compare_runs(runs);
  const ComparisonRow& row = comparison.rows[0];
  EXPECT_EQ(row.finished, 3);
  EXPECT_EQ(row.diverged, 1);
  EXPECT_EQ(row.pairs, 2);
  EXPECT_NEAR(row.paired_mean, 0.8705, 1e-12);
  EXPECT_NEAR(row.baseline_mean, 0.8745, 1e-12);
  EXPECT_NEAR(row.difference, -0.004, 1e-12);
}

TEST(CompareRuns, OneSeedHasNoInterval) {
  const ComparisonRow row =
      compare_runs({run_of("softmax", 1, 0.5), run_of("x", 1, 0.25)}).rows[1];
  EXPECT_EQ(row.pairs, 1);
  EXPECT_EQ(row.difference, -0.25);
  EXPECT_EQ(row.half_width, 0);
}

TEST(CompareRuns, SpellingsOfAFormulaAreOneActivation) {
  const Comparison comparison = compare_runs(
      {run_of("x^3/sqrt(N)", 1, 0.5), run_of("x ^ 3 / sqrt( N )", 2, 0.5),
       run_of("exp/sum", 1, 0.5)});
  ASSERT_EQ(comparison.rows.size(), 2U);
  EXPECT_EQ(comparison.rows[0].activation, "x^3/sqrt(N)");
  EXPECT_EQ(comparison.rows[0].finished, 2);
  EXPECT_EQ(comparison.baseline, 1U);
}

TEST(CompareRuns, ARepeatedSeedCountsOnceInPairs) {
  const Comparison comparison = compare_runs(
      {run_of("softmax", 1, 0.5), run_of("x", 1, 0.25), run_of("x", 1, 0.75)});
  EXPECT_EQ(comparison.rows[1].finished, 2);
  EXPECT_EQ(comparison.rows[1].pairs, 1);
  EXPECT_EQ(comparison.rows[1].difference, 0);
}

TEST(CompareRuns, WithoutSoftmaxTheFirstIsTheBaseline) {
  EXPECT_EQ(
      compare_runs({run_of("relu/N", 1, 0.5), run_of("x", 1, 0.5)}).baseline,
      0U);
}

TEST(CompareRuns, ResultsThatAreNotFiniteAreDivergences) {
  std::vector<RunInfo> runs = three_seeds();
  runs[0].accuracy = std::nan("");
  runs[1].loss = kInfinity;
  runs[2].max_weight_norm = kInfinity;
  runs[3].max_weight_norm = std::nan("");
  const Comparison comparison = compare_runs(runs);
  EXPECT_EQ(comparison.rows[0].finished, 1);
  EXPECT_EQ(comparison.rows[0].diverged, 2);
  EXPECT_EQ(comparison.rows[0].max_weight_norm, kInfinity);
  EXPECT_TRUE(std::isnan(comparison.rows[1].max_weight_norm));
}

TEST(CompareRuns, UnfinishedRunsHaveNoFigure) {
  std::vector<RunInfo> runs = three_seeds();
  runs[0].state = RunState::kInterrupted;
  runs[1] = running_run("x^3/sqrt(N)", 2);
  runs[2].accuracy.reset();  // never evaluated
  const ComparisonRow row = compare_runs(runs).rows[0];
  EXPECT_EQ(row.other, 3);
  EXPECT_EQ(row.finished, 0);
  EXPECT_EQ(row.figure.count, 0);
  EXPECT_EQ(row.pairs, 0);
}

TEST(CompareRuns, ChoosesTheFigure) {
  EXPECT_EQ(compare_runs({text_run("x", 1, 2)}).figure, Figure::kBitsPerByte);
  RunInfo bare = run_of("x", 1, 0.5);
  bare.accuracy.reset();
  EXPECT_EQ(compare_runs({bare}).figure, Figure::kLoss);
}

TEST(CompareRuns, SaysInWhatTheRunsDiffer) {
  std::vector<RunInfo> runs = three_seeds();
  EXPECT_TRUE(compare_runs(runs).cautions.empty());
  runs[0].steps = 300;
  runs[1].test_count = 500;
  runs[2].tokens = 0;  // not known
  EXPECT_EQ(compare_runs(runs).cautions,
            (std::vector<std::string>{
                "The runs differ in planned steps: 100, 300.",
                "The runs differ in test examples: 500, 10000."}));
}

TEST(CompareRuns, RefusesNoRunsAndMixedTasks) {
  EXPECT_EQ(test::message_of<std::invalid_argument>([] { compare_runs({}); }),
            "[compare] there are no runs");
  EXPECT_EQ(test::message_of<std::invalid_argument>([] {
              compare_runs({run_of("x", 1, 0.5), text_run("x", 1, 2)});
            }),
            "[compare] runs of the tasks \"cifar10\" and \"sotu\" cannot be "
            "compared");
}

TEST(ComparisonTable, ShowsEveryColumn) {
  std::vector<RunInfo> runs = three_seeds();
  runs[0] = diverged_run("x^3/sqrt(N)", 1);
  runs[0].max_weight_norm = kInfinity;
  runs[1] = run_of("x^3/sqrt(N)", 2, 0.8724);
  runs[3].train_seconds = 3600;
  EXPECT_EQ(
      comparison_table(compare_runs(runs)),
      "activation   accuracy, %           loss  train time  memory  max ‖A‖  "
      "/√N  max ‖A'‖  /√N  diverged\n"
      "-----------  -----------  -------------  ----------  ------  -------  "
      "---  --------  ---  --------\n"
      "x^3/sqrt(N)   87.2 ± 0.1  0.128 ± 0.001      30.0 s  400 MB      inf  "
      "inf         4  0.5       1/3\n"
      "softmax       87.4 ± 0.1  0.126 ± 0.001       20:20  400 MB       16  "
      "  2         4  0.5       0/3\n");
}

TEST(ComparisonTable, ShowsWhatIsMissing) {
  RunInfo bare = diverged_run("softmax", 1);
  bare.peak_mb = bare.max_weight_norm = bare.max_jacobian_norm = 0;
  bare.tokens = 0;
  EXPECT_EQ(comparison_table(compare_runs({bare, running_run("x", 1)})),
            "activation  accuracy, %  loss  train time  memory  max ‖A‖  /√N  "
            "max ‖A'‖  /√N  diverged  unfinished\n"
            "----------  -----------  ----  ----------  ------  -------  ---  "
            "--------  ---  --------  ----------\n"
            "softmax               -     -           -       -        -    -  "
            "       -    -       1/1\n"
            "x                     -     -           -  400 MB       16    2  "
            "       4  0.5       0/1         1/1\n");
}

TEST(ComparisonTable, HasBitsPerByteOfTexts) {
  const std::string table = comparison_table(compare_runs(
      {text_run("softmax", 1, 1.8351), text_run("softmax", 2, 1.8)}));
  EXPECT_NE(table.find("bits per byte"), std::string::npos) << table;
  EXPECT_NE(table.find("1.818 ± 0.025"), std::string::npos) << table;
}

TEST(ComparisonTable, TextOfOthersIsHarmless) {
  const RunInfo evil = run_of("\033[31m`|evil`\n", 1, 0.5);
  const Comparison comparison = compare_runs({evil});
  EXPECT_EQ(comparison_table(comparison).find('\033'), std::string::npos);
  EXPECT_NE(comparison_markdown(comparison)
                .find("\n| `\"\\u001b[31m'\\|evil'\\n\"` | 50.0 |"),
            std::string::npos)
      << comparison_markdown(comparison);
}

TEST(ComparisonMarkdown, HasVerdictTableAndNotes) {
  const Comparison comparison = compare_runs(three_seeds());
  EXPECT_EQ(
      comparison_markdown(comparison),
      verdict(comparison) +
          "\n\n"
          "| activation | accuracy, % | loss | train time | memory | max ‖A‖ | "
          "/√N | max ‖A'‖ | /√N | diverged | unfinished |\n"
          "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | "
          "---: | ---: |\n"
          "| `x^3/sqrt(N)` | 87.1 ± 0.1 | 0.129 ± 0.001 | 30.0 s | 400 MB | 16 "
          "| 2 | 4 | 0.5 | 0/3 |  |\n"
          "| `softmax` | 87.4 ± 0.1 | 0.126 ± 0.001 | 30.0 s | 400 MB | 16 | 2 "
          "| 4 | 0.5 | 0/3 |  |\n"
          "\n"
          "± is the standard deviation over the seeds. Times and memory are "
          "those of training. ‖A‖ and ‖A'‖ are the largest Frobenius norms of "
          "an attention matrix and of its Jacobian, over layers, heads and "
          "recorded steps; N = 64. Differences are taken seed by seed, and "
          "their intervals are Student's, each by itself: of twenty "
          "activations that are all equal, one is expected to look "
          "different.\n");
}

TEST(ComparisonJson, HasEverything) {
  std::vector<RunInfo> runs = {run_of("softmax", 1, 0.5), run_of("x", 1, 0.75),
                               diverged_run("x", 2)};
  runs[2].max_weight_norm = kInfinity;
  const Comparison comparison = compare_runs(runs);
  EXPECT_EQ(comparison_json(comparison), base::Json::parse(R"({
    "task": "cifar10", "figure": "accuracy", "tokens": 64.0,
    "test_count": 10000, "baseline": "softmax",
    "rows": [
      {"activation": "softmax", "finished": 1, "diverged": 0, "other": 0,
       "figure": {"mean": 0.5, "deviation": 0.0, "count": 1},
       "loss": {"mean": 0.5, "deviation": 0.0, "count": 1},
       "train_seconds": 30.0, "peak_mb": 400.0, "max_weight_norm": 16.0,
       "max_jacobian_norm": 4.0, "pairs": 1, "paired_mean": 0.5,
       "baseline_mean": 0.5, "difference": 0.0, "half_width": null},
      {"activation": "x", "finished": 1, "diverged": 1, "other": 0,
       "figure": {"mean": 0.75, "deviation": 0.0, "count": 1},
       "loss": {"mean": 0.25, "deviation": 0.0, "count": 1},
       "train_seconds": 30.0, "peak_mb": 400.0, "max_weight_norm": "inf",
       "max_jacobian_norm": 4.0, "pairs": 1, "paired_mean": 0.75,
       "baseline_mean": 0.5, "difference": 0.25, "half_width": null}],
    "cautions": [],
    "verdict": )" + base::Json(verdict(comparison)).dump() +
                                                           "}"));
}

}  // namespace comparison_test
}  // namespace polyattn::run
