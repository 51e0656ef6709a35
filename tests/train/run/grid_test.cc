#include "train/run/grid.h"

#include <gtest/gtest.h>

#include "runs.h"
#include "support.h"

namespace polyattn::run {
namespace grid_test {

using test::message_of;
using test::TemporaryFolder;

std::string refusal_of_grid(const std::vector<std::string>& texts) {
  return message_of<ConfigError>(
      [&] { parse_grid(texts, default_config("cifar10")); });
}

TEST(GridText, IsACrossProduct) {
  const auto axes = parse_grid({"train.lr=5e-4, 1e-3", "model.norm=layer,rms"},
                               default_config("cifar10"));
  ASSERT_EQ(axes.size(), 2U);
  EXPECT_EQ(axes[0], (GridAxis{.key = "train.lr", .values = {"5e-4", "1e-3"}}));
  const auto settings = settings_of(axes);
  ASSERT_EQ(settings.size(), 4U);
  EXPECT_EQ(setting_text(settings[0]), "train.lr=5e-4, model.norm=layer");
  EXPECT_EQ(setting_text(settings[1]), "train.lr=5e-4, model.norm=rms");
  EXPECT_EQ(setting_text(settings[3]), "train.lr=1e-3, model.norm=rms");
  const Config config = with_setting(default_config("cifar10"), settings[1]);
  EXPECT_EQ(config.train.lr, 5e-4);
  EXPECT_EQ(config.model.norm, "rms");
}

TEST(GridText, MistakesAreNamed) {
  EXPECT_EQ(refusal_of_grid({"train.lrr=1,2"}),
            "[config] --grid: unknown key \"train.lrr\": did you mean "
            "train.lr?");
  EXPECT_EQ(refusal_of_grid({"train.lr=1e-3"}),
            "[config] --grid: train.lr has one value, must have two at least: "
            "--set changes a single one");
  EXPECT_EQ(refusal_of_grid({"train.lr=1e-3,0.001"}),
            "[config] --grid: train.lr has the value \"0.001\" twice");
  EXPECT_EQ(refusal_of_grid({"train.lr=1e-3,fast"}),
            "[config] --grid: train.lr is a string \"fast\", must be a number");
  EXPECT_EQ(refusal_of_grid({"train.lr=1e-3,"}),
            "[config] --grid: train.lr has an empty value");
  for (const char* bad : {"", "train.lr", "=1,2"}) {
    EXPECT_NE(refusal_of_grid({bad}).find("is not KEY=VALUE,VALUE"),
              std::string::npos);
  }
  for (const char* key : {"model.activation", "train.seed", "task.validation",
                          "task.name", "train.threads", "record.every"}) {
    const std::string text = refusal_of_grid({std::string(key) + "=1,2"});
    EXPECT_NE(text.find("cannot be searched"), std::string::npos) << text;
  }
}

TEST(GridText, AllMistakesAreToldAtOnce) {
  EXPECT_EQ(refusal_of_grid({"train.lr=1,2", "train.lr=3,4", "model.dim=1.5,64",
                             "train.sed=1,2"})
                .substr(0, 22),
            "[config] 3 problems:\n ");
  std::string many = "train.steps=1";
  for (int i = 2; i <= 40; ++i) many += "," + std::to_string(i);
  const std::string more = "train.batch" + many.substr(many.find('='));
  EXPECT_EQ(refusal_of_grid({many, more}),
            "[config] --grid: there are more than 1000 settings");
}

GridPlan two_rates() {
  return {.axes = {{.key = "train.lr", .values = {"1e-3", "2e-3", "4e-3"}}},
          .seeds = 2,
          .validation = 0.1};
}

std::vector<GridRun> runs_of_grid(const std::string& activation,
                                  const std::vector<std::vector<double>>& all) {
  std::vector<GridRun> runs;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t seed = 0; seed < all[i].size(); ++seed) {
      const auto number = static_cast<std::int64_t>(seed) + 1;
      runs.push_back({i, all[i][seed] < 0
                             ? test::diverged_run(activation, number)
                             : test::run_of(activation, number, all[i][seed])});
    }
  }
  return runs;
}

std::size_t chosen_of(const std::vector<GridRun>& runs) {
  return choose_settings(two_rates(), runs).rows.at(0).chosen;
}

TEST(GridChoice, IsTheBestMeanOverTheSeeds) {
  EXPECT_EQ(chosen_of(runs_of_grid("x", {{.5, .5}, {.9, .2}, {.6, .5}})), 1U);
  // The first of those that are equal.
  EXPECT_EQ(chosen_of(runs_of_grid("x", {{.5, .5}, {.5, .5}, {.5, .5}})), 0U);
  // A setting with a seed that diverged is the worst, however good the other.
  EXPECT_EQ(chosen_of(runs_of_grid("x", {{.9, -1}, {.1, .1}, {.2, .1}})), 2U);
  EXPECT_EQ(chosen_of(runs_of_grid("x", {{-1, -1}, {-1, .9}, {-1, -1}})), 0U);
}

TEST(GridChoice, OfATextIsTheFewestBits) {
  std::vector<GridRun> runs = {{0, test::text_run("x", 1, 2.5)},
                               {1, test::text_run("x", 1, 2.25)}};
  EXPECT_EQ(chosen_of(runs), 1U);
}

TEST(GridChoice, IsMadeForEachActivation) {
  auto runs = runs_of_grid("softmax", {{.5, .5}, {.25, .25}});
  for (const auto& run : runs_of_grid("x", {{.5, .25}, {.75, .75}, {-1, .5}})) {
    runs.push_back(run);
  }
  const GridOutcome outcome = choose_settings(two_rates(), runs);
  EXPECT_EQ(grid_table(outcome),
            "activation  setting        validation accuracy, %\n"
            "----------  -------------  ----------------------  ------\n"
            "softmax     train.lr=1e-3            50.00 ± 0.00  chosen\n"
            "            train.lr=2e-3            25.00 ± 0.00\n"
            "x           train.lr=1e-3           37.50 ± 17.68\n"
            "            train.lr=2e-3            75.00 ± 0.00  chosen\n"
            "            train.lr=4e-3                diverged\n");
  const base::Json json = grid_json(outcome);
  EXPECT_EQ(json.at("figure"), "accuracy");
  EXPECT_EQ(json.at("validation"), 0.1);
  EXPECT_EQ(json.at("axes").at(0).at("values").at(2), "4e-3");
  const base::Json& row = json.at("rows").at(1);
  EXPECT_EQ(row.at("chosen"), 1);
  EXPECT_EQ(row.at("cells").at(1).at("values"), base::Json({"2e-3"}));
  EXPECT_EQ(row.at("cells").at(1).at("figure").at("mean"), 0.75);
  EXPECT_EQ(row.at("cells").at(2).at("figure"), nullptr);
  EXPECT_EQ(row.at("cells").at(2).at("diverged"), 1);
}

TEST(GridChoice, IsMadeForEachVariant) {
  auto runs = runs_of_grid("x", {{.5, .5}, {.25, .25}});
  for (GridRun run : runs_of_grid("x", {{.5, .25}, {.75, .75}})) {
    run.info.variant = "model.start=plain";
    runs.push_back(run);
  }
  const GridOutcome outcome = choose_settings(two_rates(), runs);
  ASSERT_EQ(outcome.rows.size(), 2U);
  EXPECT_EQ(outcome.rows[0].chosen, 0U);
  EXPECT_EQ(outcome.rows[1].chosen, 1U);
  EXPECT_EQ(outcome.rows[1].name(), "x{model.start=plain}");
  EXPECT_NE(grid_table(outcome).find("\nx{model.start=plain}  train.lr=1e-3"),
            std::string::npos)
      << grid_table(outcome);
  const base::Json json = grid_json(outcome);
  EXPECT_FALSE(json["rows"][0].contains("variant"));
  EXPECT_EQ(json["rows"][1]["variant"], "model.start=plain");
  const TemporaryFolder folder;
  write_grid_file(folder.path(), outcome);
  check_grid_file(folder.path(), outcome);  // the rows are told apart
}

TEST(GridFile, IsCheckedAgainstTheRuns) {
  const TemporaryFolder folder;
  const GridOutcome begun{two_rates(), "cifar10", Figure::kAccuracy, {}};
  check_grid_file(folder.path(), begun);  // there is none
  write_grid_file(folder.path(), begun);
  const auto outcome = choose_settings(
      two_rates(), runs_of_grid("x", {{.5, .5}, {.75, .75}, {.25, .25}}));
  check_grid_file(folder.path(), outcome);
  write_grid_file(folder.path(), outcome);
  check_grid_file(folder.path(), outcome);
  check_grid_file(folder.path(), begun);

  const auto refused = [&](const GridOutcome& other) {
    return message_of<std::runtime_error>(
        [&] { check_grid_file(folder.path(), other); });
  };
  GridOutcome other = outcome;
  other.rows[0].chosen = 0;
  EXPECT_NE(refused(other).find("has chosen setting 1 for \"x\", but by its "
                                "runs it is 0"),
            std::string::npos)
      << refused(other);
  other = outcome;
  other.plan.seeds = 3;
  EXPECT_NE(refused(other).find("other seeds"), std::string::npos);
  other = outcome;
  other.plan.axes[0].values.pop_back();
  EXPECT_NE(refused(other).find("other axes"), std::string::npos);
  for (const char* text : {"", "[]", "{}", R"({"seeds": 2})"}) {
    folder.write("grid.json", text);
    EXPECT_NE(refused(outcome).find("is damaged"), std::string::npos) << text;
  }
}

}  // namespace grid_test
}  // namespace polyattn::run
