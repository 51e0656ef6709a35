#include "train/compare_plan.h"

#include <gtest/gtest.h>

#include <set>

#include "base/duration.h"
#include "base/program.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"
#include "train/compare_run.h"
#include "train/train_bar.h"

namespace polyattn::train::compare_plan_test {
namespace {

namespace fs = std::filesystem;

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
  plan.arms = {{"softmax"}, {"x^3/sqrt(N)"}};
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

TEST(PlannedRuns, OfAVariantHaveItsSettings) {
  ComparePlan plan = make_plan();
  plan.arms = run::parse_arms(
      {"softmax,x^3/sqrt(N){model.start=plain, train.lr=1e-4}"}, plan.base);
  const auto runs = planned_runs(plan);
  ASSERT_EQ(runs.size(), 4U);
  EXPECT_EQ(runs[0].variant, "");
  EXPECT_EQ(runs[1].variant, "model.start=plain, train.lr=1e-4");
  EXPECT_EQ(runs[1].label, "x^3/sqrt(N){model.start=plain, train.lr=1e-4}");
  EXPECT_EQ(runs[1].folder,
            fs::path("out/x3-over-sqrtN-start-plain-lr-1e-4-seed1"));
  EXPECT_EQ(runs[1].config.model.start, "plain");
  EXPECT_EQ(runs[1].config.train.lr, 1e-4);
  EXPECT_EQ(runs[0].config.train.lr, plan.base.train.lr);
}

TEST(PlannedRuns, OnlyPolynomialsLearnTheirCoefficients) {
  ComparePlan plan = make_plan();
  plan.seeds = 1;
  plan.base.model.learned_coefficients = "head";
  const auto runs = planned_runs(plan);
  EXPECT_EQ(runs[0].config.model.learned_coefficients, "none");
  EXPECT_EQ(runs[1].config.model.learned_coefficients, "head");
}

ComparePlan make_search() {
  ComparePlan plan = make_plan();
  plan.grid = run::parse_grid(
      {"train.lr=1e-3,2e-3", "model.learned_coefficients=none,head"},
      plan.base);
  plan.grid_seeds = 2;
  return plan;
}

TEST(SearchRuns, AreEverySettingOfEveryActivationOnHeldOutData) {
  const auto runs = search_runs(make_search());
  // softmax learns no coefficients, so two of its four settings are the same.
  ASSERT_EQ(runs.size(), 12U);
  EXPECT_EQ(runs[0].folder,
            fs::path("out/grid/"
                     "softmax-lr-1e-3-learnedcoefficients-none-seed1"));
  EXPECT_EQ(runs[0].label,
            "softmax, train.lr=1e-3, model.learned_coefficients=none");
  EXPECT_EQ(runs[1].setting, 2U);
  EXPECT_EQ(runs[1].config.train.lr, 2e-3);
  EXPECT_EQ(runs[5].config.model.activation, "x^3/sqrt(N)");
  EXPECT_EQ(runs[5].config.model.learned_coefficients, "head");
  EXPECT_EQ(runs[6].config.train.seed, 2);
  std::set<fs::path> folders;
  for (const auto& planned : runs) {
    folders.insert(planned.folder);
    EXPECT_EQ(planned.config.task.validation, 0.1);
  }
  EXPECT_EQ(folders.size(), 12U);
  ComparePlan plan = make_search();
  plan.base.task.validation = 0.25;
  EXPECT_EQ(search_runs(plan)[0].config.task.validation, 0.25);
  EXPECT_TRUE(search_runs(make_plan()).empty());
}

TEST(SearchRuns, SayEverythingThatIsWrongOnce) {
  ComparePlan plan = make_search();
  plan.grid =
      run::parse_grid({"train.lr=1e-3,-1", "model.heads=2,7"}, plan.base);
  try {
    search_runs(plan);
    FAIL();
  } catch (const run::ConfigError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("2 problems"), std::string::npos) << text;
    EXPECT_NE(text.find("--grid: train.lr is -1.0, must be above 0"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("not a multiple of model.heads 7"), std::string::npos)
        << text;
  }
}

TEST(PlannedRuns, AfterASearchHaveItsSettingsAndOtherSeeds) {
  ComparePlan plan = make_search();
  plan.base.task.validation = 0.25;
  plan.chosen["x^3/sqrt(N)"] = {{"train.lr", "2e-3"}};
  const auto runs = planned_runs(plan);
  ASSERT_EQ(runs.size(), 4U);
  EXPECT_EQ(runs[0].config.train.seed, 3);
  EXPECT_EQ(runs[1].folder, fs::path("out/x3-over-sqrtN-seed3"));
  EXPECT_EQ(runs[1].config.train.lr, 2e-3);
  EXPECT_EQ(runs[1].label, "x^3/sqrt(N), train.lr=2e-3");
  EXPECT_EQ(runs[3].config.train.seed, 4);
  for (const auto& run : runs) EXPECT_EQ(run.config.task.validation, 0);
}

TEST(PlannedRuns, AfterASearchOfVariantsHaveTheSettingsOfEach) {
  ComparePlan plan = make_plan();
  plan.arms = {{"x"}, {"x", {{"model.start", "plain"}}}};
  plan.grid = run::parse_grid({"train.lr=1e-3,2e-3"}, plan.base);
  const auto searched = search_runs(plan);
  ASSERT_EQ(searched.size(), 4U);
  EXPECT_EQ(searched[2].folder,
            fs::path("out/grid/x-start-plain-lr-1e-3-seed1"));
  EXPECT_EQ(searched[2].config.model.start, "plain");
  plan.chosen["x{model.start=plain}"] = {{"train.lr", "2e-3"}};
  const auto runs = planned_runs(plan);
  EXPECT_EQ(runs[0].config.train.lr, plan.base.train.lr);
  EXPECT_EQ(runs[1].config.train.lr, 2e-3);
  EXPECT_EQ(runs[1].folder, fs::path("out/x-start-plain-seed2"));
  EXPECT_EQ(runs[1].label, "x{model.start=plain}, train.lr=2e-3");
}

TEST(CheckPlan, RefusesWhatIsDecidedTwice) {
  ComparePlan plan = make_plan();
  plan.arms.push_back({"x", {{"train.steps", "5"}}});
  check_plan(plan);
  plan.budget = "5m";
  EXPECT_EQ(test::message_of<base::UsageError>([&] { check_plan(plan); }),
            "--activations train.steps: --budget decides the number of steps; "
            "leave out one of them");
  plan.budget.clear();
  plan.grid = run::parse_grid({"train.steps=10,20"}, plan.base);
  EXPECT_EQ(test::message_of<base::UsageError>([&] { check_plan(plan); }),
            "train.steps is searched by --grid and set by x{train.steps=5}: "
            "leave out one of them");
  plan.arms.pop_back();
  check_plan(plan);
  plan.budget = "5m";
  EXPECT_EQ(test::message_of<base::UsageError>([&] { check_plan(plan); }),
            "--grid train.steps: --budget decides the number of steps; leave "
            "out one of them");
}

TEST(DefaultFolder, DependsOnTheSettingsButNotOnActivationsAndSeeds) {
  const ComparePlan plan = make_plan();
  ComparePlan other = plan;
  other.arms = {{"x"}};
  other.seeds = 9;
  other.base.train.seed = 5;
  EXPECT_EQ(default_folder(plan), default_folder(other));
  other.base.train.lr = 0.5;
  EXPECT_NE(default_folder(plan), default_folder(other));
  other = plan;
  other.budget = "5m";
  EXPECT_NE(default_folder(plan), default_folder(other));
  const ComparePlan search = make_search();
  EXPECT_NE(default_folder(plan), default_folder(search));
  other = search;
  other.grid_seeds = 3;
  EXPECT_NE(default_folder(search), default_folder(other));
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

TEST(ProgressText, ShowsWhatThereIs) {
  train::Progress progress;
  progress.info.step = 300;
  progress.info.steps = 900;
  EXPECT_EQ(progress_text(progress), "step 300/900  loss 0.000");
  progress.loss_sum = 1.0246;
  progress.loss_count = 2;
  progress.items_per_second = 1830;
  progress.unit = "images";
  EXPECT_EQ(progress_text(progress), "step 300/900  loss 0.512  1830 images/s");
  progress.info.result = {.loss = 1, .accuracy = 0.841};
  EXPECT_EQ(progress_text(progress),
            "step 300/900  loss 0.512  accuracy 84.1 %  1830 images/s");
  progress.info.result->bits_per_byte = 2.5;
  progress.evaluating = true;
  EXPECT_EQ(progress_text(progress),
            "step 300/900  loss 0.512  2.500 bits/byte  1830 images/s  "
            "evaluating");
}

}  // namespace
}  // namespace polyattn::train::compare_plan_test
