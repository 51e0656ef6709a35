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
using test::solution_run;
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
  EXPECT_EQ(row.difference.pairs, 3);
  EXPECT_NEAR(row.figure.mean, 0.871, 1e-12);
  EXPECT_NEAR(row.figure.deviation, 0.001, 1e-12);
  // Differences -0.4, -0.1, -0.4 points; t of two degrees is 4.30265.
  EXPECT_NEAR(row.difference.mean, -0.003, 1e-12);
  EXPECT_NEAR(row.difference.half_width.value(), 4.302652729749462 * 0.001,
              1e-9);
  EXPECT_EQ(comparison.rows[1].difference.mean, 0);
  EXPECT_FALSE(comparison.rows[1].difference.half_width);
}

TEST(CompareRuns, OnlySeedsThatHaveBoth) {
  std::vector<RunInfo> runs = three_seeds();
  runs[1] = diverged_run("x^3/sqrt(N)", 2);
  runs.push_back(run_of("x^3/sqrt(N)", 9, 0.5));
  const Comparison comparison = compare_runs(runs);
  const ComparisonRow& row = comparison.rows[0];
  EXPECT_EQ(row.finished, 3);
  EXPECT_EQ(row.diverged, 1);
  EXPECT_EQ(row.difference.pairs, 2);
  EXPECT_NEAR(row.paired_mean, 0.8705, 1e-12);
  EXPECT_NEAR(row.baseline_mean, 0.8745, 1e-12);
  EXPECT_NEAR(row.difference.mean, -0.004, 1e-12);
}

TEST(CompareRuns, OneSeedHasNoInterval) {
  const ComparisonRow row =
      compare_runs({run_of("softmax", 1, 0.5), run_of("x", 1, 0.25)}).rows[1];
  EXPECT_EQ(row.difference.pairs, 1);
  EXPECT_EQ(row.difference.mean, -0.25);
  EXPECT_FALSE(row.difference.half_width);
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

RunInfo variant_run(const std::string& activation, std::int64_t seed,
                    double accuracy, const std::string& variant) {
  RunInfo info = run_of(activation, seed, accuracy);
  info.variant = variant;
  return info;
}

TEST(CompareRuns, VariantsAreRowsOfTheirOwn) {
  std::vector<RunInfo> runs;
  for (const int seed : {1, 2}) {
    runs.push_back(variant_run("softmax", seed, 0.9, "train.lr=1e-3"));
    runs.push_back(run_of("x", seed, 0.5));
    runs.push_back(run_of("softmax", seed, 0.75));
    runs.push_back(variant_run("x", seed, 0.25, "model.start=plain"));
  }
  const Comparison comparison = compare_runs(runs);
  ASSERT_EQ(comparison.rows.size(), 4U);
  EXPECT_EQ(comparison.baseline, 2U);
  EXPECT_EQ(comparison.rows[3].activation, "x");
  EXPECT_EQ(comparison.rows[3].variant, "model.start=plain");
  EXPECT_EQ(comparison.rows[3].difference.mean, -0.5);
  EXPECT_EQ(comparison.rows[1].difference.mean, -0.25);
  EXPECT_NE(comparison_table(comparison).find("\nx{model.start=plain}  "),
            std::string::npos)
      << comparison_table(comparison);
  EXPECT_NE(verdict(comparison).find("x{model.start=plain}: 50.00 points less"),
            std::string::npos)
      << verdict(comparison);
  const base::Json json = comparison_json(comparison);
  EXPECT_EQ(json["baseline"], "softmax");
  EXPECT_FALSE(json["rows"][1].contains("variant"));
  EXPECT_EQ(json["rows"][3]["activation"], "x");
  EXPECT_EQ(json["rows"][3]["variant"], "model.start=plain");
}

TEST(CompareRuns, WithoutPlainSoftmaxTheFirstRowIsTheBaseline) {
  const Comparison comparison = compare_runs(
      {run_of("x", 1, 0.5), variant_run("softmax", 1, 0.9, "train.lr=1e-3")});
  EXPECT_EQ(comparison.baseline, 0U);
  EXPECT_EQ(comparison_json(compare_runs({variant_run("x", 1, 0.5, "a=1")}))
                .at("baseline"),
            "x{a=1}");
}

TEST(CompareRuns, AVariantOfOthersIsHarmless) {
  const Comparison comparison =
      compare_runs({variant_run("x", 1, 0.5, "\033[31mevil")});
  EXPECT_EQ(comparison.rows[0].name(), "x{\"\\u001b[31mevil\"}");
}

TEST(CompareRuns, ARepeatedSeedCountsOnceInPairs) {
  const Comparison comparison = compare_runs(
      {run_of("softmax", 1, 0.5), run_of("x", 1, 0.25), run_of("x", 1, 0.75)});
  EXPECT_EQ(comparison.rows[1].finished, 2);
  EXPECT_EQ(comparison.rows[1].difference.pairs, 1);
  EXPECT_EQ(comparison.rows[1].difference.mean, 0);
}

TEST(CompareRuns, WithoutSoftmaxTheFirstIsTheBaseline) {
  EXPECT_EQ(
      compare_runs({run_of("relu/N", 1, 0.5), run_of("x", 1, 0.5)}).baseline,
      0U);
}

TEST(CompareRuns, ResultsThatAreNotFiniteAreDivergences) {
  std::vector<RunInfo> runs = three_seeds();
  runs[0].result->accuracy = std::nan("");
  runs[1].result->loss = kInfinity;
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
  runs[2].result->accuracy.reset();  // of another figure
  EXPECT_EQ(compare_runs(runs).rows[0].other, 3);
  runs[2].result.reset();  // never evaluated
  const ComparisonRow row = compare_runs(runs).rows[0];
  EXPECT_EQ(row.other, 3);
  EXPECT_EQ(row.finished, 0);
  EXPECT_EQ(row.figure.count, 0);
  EXPECT_EQ(row.difference.pairs, 0);
}

TEST(CompareRuns, ChoosesTheFigure) {
  EXPECT_EQ(compare_runs({text_run("x", 1, 2)}).figure, Figure::kBitsPerByte);
  EXPECT_EQ(compare_runs({solution_run("x", 1, 0.02)}).figure,
            Figure::kRelativeL2);
  RunInfo bare = run_of("x", 1, 0.5);
  bare.result->accuracy.reset();
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

TEST(CompareRuns, SaysThatFiguresAreOfValidationData) {
  std::vector<RunInfo> runs = three_seeds();
  EXPECT_FALSE(compare_runs(runs).validation);
  runs[0].split = kValidation;
  EXPECT_FALSE(compare_runs(runs).validation);
  EXPECT_EQ(compare_runs(runs).cautions,
            (std::vector<std::string>{
                "The runs differ in what they were evaluated on: some on "
                "validation data, the others on the test set."}));
  for (RunInfo& run : runs) run.split = kValidation;
  runs[0].test_count = 500;
  EXPECT_TRUE(compare_runs(runs).validation);
  EXPECT_EQ(compare_runs(runs).cautions,
            (std::vector<std::string>{
                "The figures are of validation data, not of the test set.",
                "The runs differ in validation examples: 500, 10000."}));
  EXPECT_EQ(comparison_json(compare_runs(runs)).at("split"), "validation");
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

TEST(Comparison, IsOfOneModel) {
  RunInfo own = run_of("x", 1, 0.5), named = run_of("x^2", 1, 0.5);
  own.model = "vit";
  named.model = "vit-tiny32";
  EXPECT_EQ(compare_runs({run_of("x", 2, 0.5), own}).task, "cifar10");
  EXPECT_EQ(compare_runs({named, named}).task, "cifar10, vit-tiny32");
  EXPECT_EQ(
      test::message_of<std::invalid_argument>([&] {
        compare_runs({own, named});
      }),
      "[compare] runs on \"cifar10\" and on \"cifar10, vit-tiny32\" cannot "
      "be compared: their models differ");
  named.model = "\x1b[2J";
  EXPECT_EQ(compare_runs({named}).task.find('\x1b'), std::string::npos);
}

TEST(ComparisonTable, ShowsEveryColumn) {
  std::vector<RunInfo> runs = three_seeds();
  runs[0] = diverged_run("x^3/sqrt(N)", 1);
  runs[0].max_weight_norm = kInfinity;
  runs[1] = run_of("x^3/sqrt(N)", 2, 0.8724);
  runs[3].train_seconds = 3600;
  EXPECT_EQ(
      comparison_table(compare_runs(runs)),
      "activation   accuracy, %           difference           loss  train "
      "time  memory  max ‖A‖  /√N  max ‖A'‖  /√N  diverged\n"
      "-----------  -----------  -------------------  -------------  "
      "----------  ------  -------  ---  --------  ---  --------\n"
      "x^3/sqrt(N)   87.2 ± 0.1  -0.2 (-2.4 to +1.9)  0.128 ± 0.001      "
      "30.0 s  400 MB      inf  inf         4  0.5       1/3\n"
      "softmax       87.4 ± 0.1                       0.126 ± 0.001       "
      "20:20  400 MB       16    2         4  0.5       0/3\n");
}

TEST(ComparisonTable, ShowsWhatIsMissing) {
  RunInfo bare = diverged_run("softmax", 1);
  bare.peak_mb = bare.max_weight_norm = bare.max_jacobian_norm = 0;
  bare.tokens = 0;
  EXPECT_EQ(comparison_table(compare_runs({bare, running_run("x", 1)})),
            "activation  accuracy, %  difference  loss  train time  memory  "
            "max ‖A‖  /√N  max ‖A'‖  /√N  diverged  unfinished\n"
            "----------  -----------  ----------  ----  ----------  ------  "
            "-------  ---  --------  ---  --------  ----------\n"
            "softmax               -                 -           -       -  "
            "      -    -         -    -       1/1\n"
            "x                     -           -     -           -  400 MB  "
            "     16    2         4  0.5       0/1         1/1\n");
}

TEST(ComparisonTable, HasBitsPerByteOfTexts) {
  const std::string table = comparison_table(compare_runs(
      {text_run("softmax", 1, 1.8351), text_run("softmax", 2, 1.8)}));
  EXPECT_NE(table.find("bits per byte"), std::string::npos) << table;
  EXPECT_NE(table.find("1.818 ± 0.025"), std::string::npos) << table;
}

TEST(ComparisonTable, HasTheErrorsOfSolutions) {
  const Comparison comparison = compare_runs(
      {solution_run("softmax", 1, 0.0270), solution_run("softmax", 2, 0.0274),
       solution_run("x^3", 1, 0.0150)});
  const std::string table = comparison_table(comparison);
  EXPECT_NE(table.find("relative L2"), std::string::npos) << table;
  EXPECT_NE(table.find("relative L1"), std::string::npos) << table;
  EXPECT_NE(table.find("0.0272 ± 0.0003"), std::string::npos) << table;
  EXPECT_NE(table.find("-0.0120"), std::string::npos) << table;
  EXPECT_NE(table.find("0.0135"), std::string::npos) << table;
  EXPECT_NE(table.find("1.5e-05"), std::string::npos) << table;
  const base::Json json = comparison_json(comparison);
  EXPECT_EQ(json["figure"], "relative_l2");
  EXPECT_EQ(json["rows"][1]["relative_l1"]["mean"], 0.9 * 0.0150);
}

TEST(ComparisonTable, HasTheSettingThatWasChosen) {
  Comparison comparison = compare_runs({run_of("softmax", 1, 0.5)});
  EXPECT_FALSE(comparison_json(comparison)["rows"][0].contains("setting"));
  comparison.rows[0].setting = "train.lr=1e-3";
  EXPECT_NE(comparison_table(comparison).find("softmax (train.lr=1e-3)  "),
            std::string::npos)
      << comparison_table(comparison);
  EXPECT_NE(comparison_markdown(comparison).find("| `softmax (train.lr=1e-3)`"),
            std::string::npos);
  EXPECT_EQ(comparison_json(comparison)["rows"][0]["setting"], "train.lr=1e-3");
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
          "| activation | accuracy, % | difference | loss | train time | "
          "memory "
          "| max ‖A‖ | /√N | max ‖A'‖ | /√N | diverged | unfinished |\n"
          "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | "
          "---: | ---: | ---: |\n"
          "| `x^3/sqrt(N)` | 87.1 ± 0.1 | -0.3 (-0.7 to +0.1) | 0.129 ± 0.001 "
          "| 30.0 s | 400 MB | 16 | 2 | 4 | 0.5 | 0/3 |  |\n"
          "| `softmax` | 87.4 ± 0.1 |  | 0.126 ± 0.001 | 30.0 s | 400 MB | 16 "
          "| 2 | 4 | 0.5 | 0/3 |  |\n"
          "\n"
          "± is the standard deviation over the seeds. Times and memory are "
          "those of training. ‖A‖ and ‖A'‖ are the largest Frobenius norms of "
          "an attention matrix and of its Jacobian, over layers, heads and "
          "recorded steps; N = 64. Differences are those to the baseline, "
          "taken seed by seed, with 95 % interval.\n");
}

TEST(ComparisonJson, HasEverything) {
  std::vector<RunInfo> runs = {run_of("softmax", 1, 0.5), run_of("x", 1, 0.75),
                               diverged_run("x", 2)};
  runs[2].max_weight_norm = kInfinity;
  const Comparison comparison = compare_runs(runs);
  EXPECT_EQ(comparison_json(comparison), base::Json::parse(R"({
    "task": "cifar10", "figure": "accuracy", "tokens": 64.0,
    "test_count": 10000, "split": "test", "baseline": "softmax",
    "intervals": null,
    "rows": [
      {"activation": "softmax", "finished": 1, "diverged": 0, "other": 0,
       "figure": {"mean": 0.5, "deviation": 0.0, "count": 1},
       "loss": {"mean": 0.5, "deviation": 0.0, "count": 1},
       "train_seconds": 30.0, "peak_mb": 400.0, "max_weight_norm": 16.0,
       "max_jacobian_norm": 4.0, "pairs": 1, "paired_mean": 0.5,
       "baseline_mean": 0.5, "difference": 0.0, "half_width": null,
       "pooled": false},
      {"activation": "x", "finished": 1, "diverged": 1, "other": 0,
       "figure": {"mean": 0.75, "deviation": 0.0, "count": 1},
       "loss": {"mean": 0.25, "deviation": 0.0, "count": 1},
       "train_seconds": 30.0, "peak_mb": 400.0, "max_weight_norm": "inf",
       "max_jacobian_norm": 4.0, "pairs": 1, "paired_mean": 0.75,
       "baseline_mean": 0.5, "difference": 0.25, "half_width": null,
       "pooled": false}],
    "cautions": [],
    "verdict": )" + base::Json(verdict(comparison)).dump() +
                                                           "}"));
}

TEST(ComparisonJson, SaysWhatItsIntervalsAre) {
  std::vector<RunInfo> runs = three_seeds();
  add_runs(runs, "x", {0.801, 0.803, 0.801});
  const Comparison comparison = compare_runs(runs);
  const base::Json json = comparison_json(comparison);
  const base::Json& intervals = json["intervals"];
  EXPECT_EQ(intervals["note"],
            "95 % intervals, all at once, seed variance pooled over 3 "
            "activations");
  EXPECT_EQ(intervals["count"], 2);
  EXPECT_EQ(intervals["pooled"], 3);
  EXPECT_EQ(intervals["degrees"], 4);
  EXPECT_NEAR(intervals["deviation"].get<double>(),
              std::sqrt(comparison.basis.variance), 1e-15);
  EXPECT_EQ(intervals["tell"], 0.005);
  EXPECT_EQ(intervals["seeds_to_tell"],
            seeds_to_tell(0.005, comparison.basis).value());
  EXPECT_EQ(json["rows"][0]["pooled"], true);
  EXPECT_EQ(json["rows"][0]["half_width"],
            comparison.rows[0].difference.half_width.value());
  EXPECT_EQ(json["rows"][1]["half_width"], nullptr);
  EXPECT_NE(comparison_markdown(comparison)
                .find("with 95 % intervals, all at once, seed variance pooled "
                      "over 3 activations."),
            std::string::npos);
}

}  // namespace comparison_test
}  // namespace polyattn::run
