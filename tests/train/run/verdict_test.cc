// The words of the verdict, for known runs.
#include <gtest/gtest.h>

#include <cmath>

#include "runs.h"
#include "train/run/comparison.h"

namespace polyattn::run {
namespace verdict_test {

using test::add_runs;
using test::diverged_run;
using test::run_of;
using test::running_run;
using test::solution_run;
using test::text_run;

std::string verdict_of(const std::vector<RunInfo>& runs) {
  return verdict(compare_runs(runs));
}

TEST(Verdict, NoDifferenceCanBeTold) {
  std::vector<RunInfo> runs;
  add_runs(runs, "softmax", {0.874, 0.873, 0.875});
  add_runs(runs, "x^3/sqrt(N)", {0.870, 0.872, 0.871});
  EXPECT_EQ(verdict_of(runs),
            "x^3/sqrt(N) reaches 87.1 % against 87.4 % for softmax: 0.3 points "
            "less (95 % interval -0.7 to +0.1, 3 seeds): no significant "
            "difference. About 1 more seed would tell a difference of 0.5 "
            "points (80 % power).");
}

TEST(Verdict, Worse) {
  std::vector<RunInfo> runs;
  add_runs(runs, "softmax", {0.874, 0.873, 0.875});
  add_runs(runs, "x^3", {0.800, 0.802, 0.801});
  EXPECT_EQ(verdict_of(runs),
            "x^3 reaches 80.1 % against 87.4 % for softmax: 7.3 points less "
            "(95 % interval -7.7 to -6.9, 3 seeds): worse.");
}

TEST(Verdict, Better) {
  std::vector<RunInfo> runs;
  add_runs(runs, "x^3", {0.900, 0.902});
  add_runs(runs, "softmax", {0.8742, 0.8752});
  EXPECT_EQ(verdict_of(runs),
            "x^3 reaches 90.1 % against 87.5 % for softmax: 2.6 points more "
            "(95 % interval +2.0 to +3.3, 2 seeds): better.");
}

TEST(Verdict, LowerIsBetterForTheErrorOfASolution) {
  const std::vector<RunInfo> runs = {
      solution_run("softmax", 1, 0.0270), solution_run("softmax", 2, 0.0274),
      solution_run("x^3", 1, 0.0150), solution_run("x^3", 2, 0.0156)};
  EXPECT_EQ(verdict_of(runs),
            "x^3 reaches a relative L2 error of 0.0153 against 0.0272 for "
            "softmax: 0.0119 less (95 % interval -0.0132 to -0.0106, 2 seeds): "
            "better.");
  EXPECT_EQ(verdict_of({runs[0], runs[2]}),
            "x^3 reaches a relative L2 error of 0.0150 against 0.0270 for "
            "softmax: 0.0120 less, with one seed, which cannot tell how seeds "
            "scatter.");
}

TEST(Verdict, LowerIsBetterForBits) {
  EXPECT_EQ(
      verdict_of({text_run("softmax", 1, 1.830), text_run("x", 1, 1.8504),
                  text_run("softmax", 2, 1.840), text_run("x", 2, 1.861)}),
      "x reaches 1.856 bits per byte against 1.835 for softmax: 0.021 "
      "more (95 % interval +0.017 to +0.025, 2 seeds): worse.");
  EXPECT_EQ(
      verdict_of({text_run("softmax", 1, 1.830), text_run("x", 1, 1.7504),
                  text_run("softmax", 2, 1.840), text_run("x", 2, 1.761)}),
      "x reaches 1.756 bits per byte against 1.835 for softmax: 0.079 "
      "less (95 % interval -0.083 to -0.075, 2 seeds): better.");
}

TEST(Verdict, OfLossesAlone) {
  std::vector<RunInfo> runs = {run_of("softmax", 1, 0.5), run_of("x", 1, 0.25)};
  for (RunInfo& run : runs) run.result->accuracy.reset();
  EXPECT_EQ(verdict_of(runs),
            "x reaches a loss of 0.750 against 0.500 for softmax: 0.250 more, "
            "with one seed, which cannot tell how seeds scatter.");
}

TEST(Verdict, OneSeedTellsNoMoreThanItsTestSet) {
  EXPECT_EQ(verdict_of({run_of("softmax", 1, 0.874), run_of("x", 1, 0.871)}),
            "x reaches 87.1 % against 87.4 % for softmax: 0.3 points less, "
            "with one seed, which cannot tell more than the sampling error of "
            "the test set (0.9 points for 10000 examples, 95 %): no "
            "significant difference.");
  EXPECT_EQ(verdict_of({run_of("softmax", 1, 0.874), run_of("x", 1, 0.5)}),
            "x reaches 50.0 % against 87.4 % for softmax: 37.4 points less, "
            "with one seed, which cannot tell more than the sampling error of "
            "the test set (1.2 points for 10000 examples, 95 %): worse by more "
            "than that, for this seed.");
}

TEST(Verdict, NamesTheValidationSet) {
  std::vector<RunInfo> runs = {run_of("softmax", 1, 0.874),
                               run_of("x", 1, 0.871)};
  for (RunInfo& run : runs) run.split = kValidation;
  const std::string text = verdict_of(runs);
  EXPECT_NE(text.find("the sampling error of the validation set (0.9"),
            std::string::npos)
      << text;
}

TEST(Verdict, OneSeedOfAText) {
  EXPECT_EQ(verdict_of({text_run("softmax", 1, 1.8), text_run("x", 1, 1.9)}),
            "x reaches 1.900 bits per byte against 1.800 for softmax: 0.100 "
            "more, with one seed, which cannot tell how seeds scatter.");
}

TEST(Verdict, SmallDifferencesGetADigitMore) {
  std::vector<RunInfo> runs;
  add_runs(runs, "softmax", {0.8740, 0.8730});
  add_runs(runs, "x", {0.8742, 0.8734});
  EXPECT_EQ(verdict_of(runs),
            "x reaches 87.38 % against 87.35 % for softmax: 0.03 points more "
            "(95 % interval -0.10 to +0.16, 2 seeds): no significant "
            "difference. 2 seeds tell a difference of 0.5 points (80 % "
            "power).");
  runs.clear();
  add_runs(runs, "softmax", {0.5, 0.5});
  add_runs(runs, "x", {0.5, 0.5});
  EXPECT_EQ(verdict_of(runs),
            "x reaches 50.00 % against 50.00 % for softmax: 0.00 points apart "
            "(95 % interval -0.04 to +0.04, 2 seeds): no significant "
            "difference. 2 seeds tell a difference of 0.5 points (80 % "
            "power).");
}

TEST(Verdict, TheBestComesFirstAndTheRestInShort) {
  std::vector<RunInfo> runs;
  add_runs(runs, "x^3", {0.800, 0.802, 0.801});
  add_runs(runs, "softmax", {0.874, 0.873, 0.875});
  add_runs(runs, "x^3/sqrt(N)", {0.870, 0.872, 0.871});
  runs.push_back(run_of("relu/N", 1, 0.7));
  runs.push_back(run_of("sigmoid", 8, 0.9));
  EXPECT_EQ(
      verdict_of(runs),
      "x^3/sqrt(N) reaches 87.1 % against 87.4 % for softmax: 0.3 points "
      "less (95 % interval -0.6 to 0.0, 3 seeds): no significant "
      "difference. x^3: 7.3 points less (-7.6 to -7.0), worse; relu/N: 17.4 "
      "points less, one seed; sigmoid reaches 90.0 % (one run). 95 % "
      "intervals, all at once, seed variance pooled over 3 activations. 3 "
      "seeds tell a difference of 0.5 points (80 % power).");
}

TEST(Verdict, ManyAreCounted) {
  std::vector<RunInfo> runs;
  add_runs(runs, "softmax", {0.50, 0.51});
  add_runs(runs, "x", {0.90, 0.91});
  add_runs(runs, "x^2", {0.80, 0.81});
  add_runs(runs, "x^3", {0.20, 0.21});
  add_runs(runs, "x^4", {0.40, 0.60});
  add_runs(runs, "x^5", {0.30, 0.31});
  EXPECT_EQ(verdict_of(runs),
            "x reaches 90.50 % against 50.50 % for softmax: 40.00 points more "
            "(95 % interval +39.98 to +40.02, 2 seeds): better. Of the 4 "
            "others 1 better, 2 worse, 1 without a significant difference. "
            "95 % intervals, all at once, seed variance pooled over 5 "
            "activations, x^4 by its own.");
}

// Each seed shows the loss of x^3. Its interval alone, Student's of two seeds,
// is 2.7 +- 3.2 points.
TEST(Verdict, TwoSeedsOfSeveralActivationsTellWhatOneCannot) {
  std::vector<RunInfo> runs;
  add_runs(runs, "softmax", {0.420, 0.430});
  add_runs(runs, "x^3", {0.3955, 0.4005});
  EXPECT_NE(verdict_of(runs).find("no significant difference"),
            std::string::npos);
  add_runs(runs, "x^2", {0.410, 0.417});
  add_runs(runs, "x", {0.390, 0.397});
  add_runs(runs, "relu/N", {0.380, 0.389});
  const Comparison comparison = compare_runs(runs);
  EXPECT_EQ(comparison.basis.pooled, 5);
  const Difference& cubic = comparison.rows[1].difference;
  EXPECT_LT(cubic.mean + cubic.half_width.value(), 0);
}

TEST(Verdict, SaysHowManySeedsWouldTell) {
  std::vector<RunInfo> runs;
  add_runs(runs, "softmax", {0.80, 0.84, 0.82});
  add_runs(runs, "x", {0.81, 0.82, 0.84});
  add_runs(runs, "x^2", {0.83, 0.81, 0.80});
  const auto seeds = seeds_to_tell(0.005, compare_runs(runs).basis);
  ASSERT_TRUE(seeds);
  EXPECT_NE(verdict_of(runs).find(
                "About " + std::to_string(*seeds - 3) +
                " more seeds would tell a difference of 0.5 points"),
            std::string::npos)
      << verdict_of(runs);
  EXPECT_NE(verdict_of({text_run("softmax", 1, 2.0), text_run("x", 1, 3.0),
                        text_run("softmax", 2, 3.0), text_run("x", 2, 1.0)})
                .find("To tell a difference of 0.01 takes more than 1000 seeds "
                      "(80 % power)."),
            std::string::npos);
}

TEST(Verdict, TheSamplingErrorIsThatOfAllThatHaveOneSeed) {
  EXPECT_EQ(verdict_of({run_of("softmax", 1, 0.5), run_of("x", 1, 0.484),
                        run_of("x^2", 1, 0.48)}),
            "x reaches 48.4 % against 50.0 % for softmax: 1.6 points less, "
            "with one seed, which cannot tell more than the sampling error of "
            "the test set (1.6 points for 10000 examples, 95 %, all at once): "
            "worse by more than that, for this seed. x^2: 2.0 points less, one "
            "seed.");
}

TEST(Verdict, MeansAreThoseOfThePairs) {
  std::vector<RunInfo> runs;
  add_runs(runs, "softmax", {0.80, 0.82, 0.90});
  add_runs(runs, "x", {0.80, 0.81});
  EXPECT_EQ(verdict_of(runs),
            "x reaches 80.5 % against 81.0 % for softmax: 0.5 points less "
            "(95 % interval -6.9 to +5.9, 2 seeds): no significant "
            "difference. About 16 more seeds would tell a difference of 0.5 "
            "points (80 % power).");
}

TEST(Verdict, NoSeedHasBoth) {
  EXPECT_EQ(verdict_of({run_of("softmax", 1, 0.8), run_of("x", 2, 0.9),
                        run_of("x", 3, 0.92)}),
            "x reaches 91.0 % (2 runs, standard deviation 1.4), softmax "
            "reaches 80.0 % (one run): no seed has both, so they are not "
            "compared.");
}

TEST(Verdict, NamesDivergedAndUnfinishedRuns) {
  std::vector<RunInfo> runs;
  add_runs(runs, "softmax", {0.874, 0.8736, 0.875});
  runs.push_back(run_of("x^3", 1, 0.80));
  runs.push_back(run_of("x^3", 2, 0.81));
  runs.push_back(diverged_run("x^3", 3));
  runs.push_back(diverged_run("x^8", 1));
  runs.push_back(running_run("x^8", 2));
  EXPECT_EQ(verdict_of(runs),
            "x^3 reaches 80.5 % against 87.4 % for softmax: 6.9 points less "
            "(95 % interval -13.5 to -0.3, 2 seeds): worse. x^3 diverged in 1 "
            "of 3 runs, which the figures leave out. "
            "x^8 diverged in 1 of 2 runs. 1 of 2 runs of x^8 has not "
            "finished.");
}

TEST(Verdict, NothingFinished) {
  EXPECT_EQ(verdict_of({diverged_run("softmax", 1), diverged_run("softmax", 2),
                        diverged_run("x", 1)}),
            "No run has finished. softmax diverged in 2 of 2 runs. x diverged "
            "in 1 of 1 run.");
  EXPECT_EQ(verdict_of({running_run("softmax", 1), running_run("softmax", 2)}),
            "No run has finished. 2 of 2 runs of softmax have not finished.");
}

TEST(Verdict, TheBaselineDidNotFinish) {
  EXPECT_EQ(verdict_of({diverged_run("softmax", 1), run_of("x", 1, 0.5),
                        run_of("x^2", 1, 0.6)}),
            "x^2 reaches 60.0 % (one run); x reaches 50.0 % (one run). No run "
            "of softmax has finished to compare with. softmax diverged in 1 of "
            "1 run.");
}

TEST(Verdict, OneActivationAlone) {
  std::vector<RunInfo> runs;
  add_runs(runs, "x", {0.8, 0.9});
  EXPECT_EQ(verdict_of(runs),
            "x reaches 85.0 % (2 runs, standard deviation 7.1). There is "
            "nothing to compare it with.");
  EXPECT_EQ(verdict(Comparison{}), "There are no runs.");
}

TEST(Verdict, NanIsADivergence) {
  RunInfo nan = run_of("x", 1, 0.1);
  nan.result->loss = std::nan("");
  EXPECT_EQ(verdict_of({run_of("softmax", 1, 0.5), nan}),
            "softmax reaches 50.0 % (one run). There is nothing to compare it "
            "with. x diverged in 1 of 1 run.");
}

TEST(Verdict, AddsCautions) {
  RunInfo longer = run_of("x", 1, 0.6);
  longer.steps = 200;
  const std::string text = verdict_of({run_of("softmax", 1, 0.5), longer});
  EXPECT_TRUE(text.ends_with(" The runs differ in planned steps: 100, 200."))
      << text;
}

}  // namespace verdict_test
}  // namespace polyattn::run
