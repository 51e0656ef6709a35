#include "train/compare_plan.h"

#include <gtest/gtest.h>

#include <set>

#include "base/duration.h"
#include "base/program.h"
#include "polyattn/activation.h"
#include "support/temporary_folder.h"
#include "train/train_bar.h"

namespace polyattn::train::compare_plan_test {
namespace {

namespace fs = std::filesystem;

TEST(ParseActivations, SplitsTrimsAndMakesCanonical) {
  EXPECT_EQ(
      parse_activations({"softmax, x^3/sqrt(N)", "x^2*0.5"}),
      (std::vector<std::string>{"softmax", "x^3/sqrt(N)",
                                Activation::parse("0.5 x^2").to_string()}));
}

TEST(ParseActivations, RefusesEmptyAndRepeated) {
  EXPECT_THROW(parse_activations({"softmax,,x"}), base::UsageError);
  EXPECT_THROW(parse_activations({""}), base::UsageError);
  EXPECT_THROW(parse_activations({"softmax,"}), base::UsageError);
  EXPECT_THROW(parse_activations({"x^3", "x^3"}), base::UsageError);
  EXPECT_THROW(parse_activations({"x/2,0.5 x"}), base::UsageError);
  EXPECT_THROW(parse_activations({"x^"}), FormulaError);
}

TEST(Duration, AsPeopleWriteIt) {
  EXPECT_DOUBLE_EQ(base::parse_duration("90"), 90);
  EXPECT_DOUBLE_EQ(base::parse_duration("90s"), 90);
  EXPECT_DOUBLE_EQ(base::parse_duration("5m"), 300);
  EXPECT_DOUBLE_EQ(base::parse_duration("2.5min"), 150);
  EXPECT_DOUBLE_EQ(base::parse_duration("1h30m"), 5400);
  for (const char* bad : {"", "soon", "5x", "-5m", "0", "5m-", "m", "inf",
                          "nan", "1e400", "5 m"}) {
    EXPECT_THROW(base::parse_duration(bad), base::UsageError) << bad;
  }
  EXPECT_EQ(base::duration_text(12.4), "12 s");
  EXPECT_EQ(base::duration_text(65), "1 min 05 s");
  EXPECT_EQ(base::duration_text(3725), "1 h 02 min");
}

TEST(Slug, IsAPartOfAFileName) {
  EXPECT_EQ(slug_of("x^3/sqrt(N)"), "x3-over-sqrtN");
  EXPECT_EQ(slug_of("1 + x + x^2/2"), "1-plus-x-plus-x2-over-2");
  EXPECT_EQ(slug_of("softmax"), "softmax");
}

ComparePlan make_plan() {
  ComparePlan plan;
  plan.base = run::default_config("fashion-mnist");
  plan.activations = {"softmax", "x^3/sqrt(N)"};
  plan.seeds = 2;
  plan.folder = "out";
  return plan;
}

TEST(PlannedRuns, GoSeedBySeedInFoldersOfTheirOwn) {
  const auto runs = planned_runs(make_plan());
  ASSERT_EQ(runs.size(), 4U);
  EXPECT_EQ(runs[0].folder, fs::path("out/softmax-seed1"));
  EXPECT_EQ(runs[1].folder, fs::path("out/x3-over-sqrtN-seed1"));
  EXPECT_EQ(runs[1].config.model.activation, "x^3/sqrt(N)");
  EXPECT_EQ(runs[2].config.train.seed, 2);
  std::set<fs::path> folders;
  for (const auto& planned : runs) folders.insert(planned.folder);
  EXPECT_EQ(folders.size(), 4U);
}

TEST(PlannedRuns, OnlyPolynomialsLearnTheirCoefficients) {
  ComparePlan plan = make_plan();
  plan.seeds = 1;
  plan.base.model.learned_coefficients = "head";
  const auto runs = planned_runs(plan);
  EXPECT_EQ(runs[0].config.model.learned_coefficients, "none");
  EXPECT_EQ(runs[1].config.model.learned_coefficients, "head");
}

TEST(DefaultFolder, DependsOnTheSettingsButNotOnActivationsAndSeeds) {
  const ComparePlan plan = make_plan();
  ComparePlan other = plan;
  other.activations = {"x"};
  other.seeds = 9;
  other.base.train.seed = 5;
  EXPECT_EQ(default_folder(plan), default_folder(other));
  other.base.train.lr = 0.5;
  EXPECT_NE(default_folder(plan), default_folder(other));
  other = plan;
  other.budget = "5m";
  EXPECT_NE(default_folder(plan), default_folder(other));
}

TEST(StepsWithin, FillTheBudget) {
  const Costs costs{.step_seconds = 0.1, .evaluation_seconds = 2};
  const auto steps = steps_within(400, 4, costs);
  const double evaluations =
      static_cast<double>((steps.steps + steps.evaluate - 1) / steps.evaluate);
  const double used =
      4 * (static_cast<double>(steps.steps) * 0.1 + evaluations * 2);
  EXPECT_LE(used, 400);
  EXPECT_GT(used, 390);
  // Too short for anything: a few steps all the same.
  EXPECT_GE(steps_within(0.001, 4, costs).steps, 1);
}

TEST(StepsWithin, AreWhatAConfigTakesAtMost) {
  const Costs costs{.step_seconds = 0.1, .evaluation_seconds = 2};
  EXPECT_EQ(steps_within(3.6e303, 4, costs).steps, 1000000000);
  EXPECT_EQ(steps_within(3.6e303, 4, costs).evaluate, 333333334);
  const Costs none{.step_seconds = 0, .evaluation_seconds = 0};
  EXPECT_EQ(steps_within(400, 4, none).steps, 1000000000);
}

class PlanFile : public ::testing::Test {
 protected:
  void SetUp() override {
    plan_ = make_plan();
    plan_.budget = "5m";
    plan_.folder = folder_.path();
  }

  void overwrite(const std::string& text) const {
    folder_.write("compare.json", text);
  }

  test::TemporaryFolder folder_;
  ComparePlan plan_;
};

TEST_F(PlanFile, RemembersTheSteps) {
  EXPECT_FALSE(earlier_steps(plan_));
  remember_steps(plan_, {.steps = 70, .evaluate = 24});
  ASSERT_TRUE(earlier_steps(plan_));
  EXPECT_EQ(earlier_steps(plan_)->steps, 70);
  EXPECT_EQ(earlier_steps(plan_)->evaluate, 24);
  plan_.budget = "6m";
  EXPECT_THROW(earlier_steps(plan_), std::runtime_error);
}

TEST_F(PlanFile, RefusesADamagedFile) {
  for (const char* text :
       {"", "[]", "{}", R"({"budget":"5m","steps":"x","evaluate":1})",
        R"({"budget":"5m","steps":0,"evaluate":1})"}) {
    overwrite(text);
    EXPECT_THROW(earlier_steps(plan_), std::runtime_error) << text;
  }
}

TEST(StatusText, ShowsWhatThereIs) {
  train::Status status;
  status.step = 300;
  status.steps = 900;
  status.loss = 0.5123;
  status.items_per_second = 1830;
  status.unit = "images";
  EXPECT_EQ(status_text(status), "step 300/900  loss 0.512  1830 images/s");
  status.last =
      train::Evaluation{.loss = 1, .accuracy = 0.841, .bits_per_byte = {}};
  EXPECT_EQ(status_text(status),
            "step 300/900  loss 0.512  accuracy 84.1 %  1830 images/s");
  status.last->bits_per_byte = 2.5;
  EXPECT_EQ(status_text(status),
            "step 300/900  loss 0.512  2.500 bits/byte  1830 images/s");
}

}  // namespace
}  // namespace polyattn::train::compare_plan_test
