#include "train/run/experiment.h"

#include <gtest/gtest.h>

#include <set>

#include "support.h"

namespace polyattn::run {
namespace experiment_test {

namespace fs = std::filesystem;

using test::message_of;

constexpr const char* kGood = R"(title = "Powers"
claim = "A power is as good as softmax."
source = "us"

[[comparison]]
name = "images"
task = "cifar10"
activations = ["softmax", "x^2",
               "x^2{model.start=plain}"]
seeds = 5
settings = ["train.steps=600", "train.lr=2e-3"]
grid = ["train.weight_decay=0.05,0.1"]
grid_seeds = 2
quick = ["model.patch=8"]

[[comparison]]
name = "texts"
task = "sotu"
activations = ["softmax"]

[quick]
seeds = 2
activations = 2
settings = ["train.steps=4", "model.dim=16"]
)";

Experiment parsed_experiment(const std::string& text,
                             ExperimentSize size = ExperimentSize::kWhole) {
  return parse_experiment(text, "e.toml", size);
}

TEST(ExperimentFile, AComparisonMayNameAModel) {
  std::string text = kGood;
  text.replace(text.find("seeds = 5"), 9, "model = \"vit-tiny32\"");
  const Experiment experiment = parsed_experiment(text);
  EXPECT_EQ(experiment.comparisons[0].base.model.name, "vit-tiny32");
  EXPECT_EQ(experiment.comparisons[0].base.model.dim, 192);
  EXPECT_EQ(experiment.comparisons[1].base.model.name, "gpt");
}

TEST(ExperimentFile, SaysWhatIsRun) {
  const Experiment experiment = parsed_experiment(kGood);
  EXPECT_EQ(experiment.title, "Powers");
  EXPECT_EQ(experiment.claim, "A power is as good as softmax.");
  EXPECT_EQ(experiment.source, "us");
  ASSERT_EQ(experiment.comparisons.size(), 2U);
  const ExperimentComparison& images = experiment.comparisons[0];
  EXPECT_EQ(images.name, "images");
  EXPECT_EQ(images.base.task.name, "cifar10");
  EXPECT_EQ(images.base.train.steps, 600);
  EXPECT_EQ(images.base.train.lr, 2e-3);
  EXPECT_EQ(images.base.model.patch, 4);
  ASSERT_EQ(images.arms.size(), 3U);
  EXPECT_EQ(images.arms[2].name(), "x^2{model.start=plain}");
  EXPECT_EQ(images.seeds, 5);
  EXPECT_EQ(images.grid_seeds, 2);
  ASSERT_EQ(images.grid.size(), 1U);
  EXPECT_EQ(images.grid[0].key, "train.weight_decay");
  const ExperimentComparison& texts = experiment.comparisons[1];
  EXPECT_EQ(texts.base, default_config("sotu"));
  EXPECT_EQ(texts.seeds, 3);
  EXPECT_TRUE(texts.grid.empty());
}

TEST(ExperimentFile, HasAQuickVersion) {
  const Experiment experiment =
      parsed_experiment(kGood, ExperimentSize::kQuick);
  const ExperimentComparison& images = experiment.comparisons.at(0);
  EXPECT_EQ(images.base.train.steps, 4);
  EXPECT_EQ(images.base.train.lr, 2e-3);
  EXPECT_EQ(images.base.model.dim, 16);
  EXPECT_EQ(images.base.model.patch, 8);
  EXPECT_EQ(images.seeds, 2);
  EXPECT_EQ(images.grid_seeds, 1);
  EXPECT_EQ(images.arms.size(), 2U);
  EXPECT_EQ(experiment.comparisons.at(1).base.train.steps, 4);
}

std::string refusal_of_experiment(
    const std::string& text, ExperimentSize size = ExperimentSize::kWhole) {
  return message_of<ConfigError>([&] { parsed_experiment(text, size); });
}

// The good file with one text replaced.
std::string refusal_with(const std::string& from, const std::string& to,
                         ExperimentSize size = ExperimentSize::kWhole) {
  std::string text = kGood;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  return refusal_of_experiment(text, size);
}

TEST(ExperimentFile, MistakesHaveTheirPlace) {
  EXPECT_EQ(refusal_with("title = \"Powers\"\n", ""),
            "[experiment] e.toml: title is missing");
  EXPECT_EQ(refusal_with("\"us\"", "\"\""),
            "[experiment] e.toml:3:1: source is empty");
  EXPECT_EQ(refusal_with("\"us\"", "3"),
            "[experiment] e.toml:3:1: source is an integer, must be a string");
  EXPECT_EQ(refusal_with("\"us\"", "\"us"),
            "[experiment] e.toml:3:13: a string must end on its line, with \"");
  EXPECT_EQ(refusal_with("source", "sauce = 1\nsource"),
            "[experiment] e.toml:3:1: unknown key \"sauce\": did you mean "
            "source?");
  EXPECT_EQ(refusal_with("name = \"images\"\n", ""),
            "[experiment] e.toml:5:1: name is missing");
  EXPECT_EQ(refusal_with("\"images\"", "\"../images\""),
            "[experiment] e.toml:6:1: name is \"../images\", must be of "
            "letters, digits, - and _");
  EXPECT_EQ(refusal_with("\"texts\"", "\"images\""),
            "[experiment] e.toml:17:1: there are two comparisons \"images\"");
  EXPECT_EQ(refusal_with("\"cifar10\"", "\"cifar\""),
            "[experiment] e.toml:7:1: unknown task \"cifar\": did you mean "
            "cifar10?");
  EXPECT_EQ(refusal_with("seeds = 5", "model = \"vit-tiny23\""),
            "[experiment] e.toml:10:1: unknown model \"vit-tiny23\": did you "
            "mean vit-tiny28?");
  EXPECT_EQ(refusal_with("seeds = 5", "model = \"gpt\"")
                .find("[experiment] e.toml:10:1: unknown model \"gpt\": "),
            0U);
  EXPECT_EQ(refusal_with("\"train.steps=600\"", "\"model.name=vit\""),
            "[experiment] e.toml:11:13: model.name is no setting of a "
            "comparison");
  EXPECT_EQ(refusal_with("seeds = 5", "seeds = 0"),
            "[experiment] e.toml:10:1: seeds is 0, must be from 1 to 1000");
  EXPECT_EQ(refusal_with("seeds = 5", "sedes = 5"),
            "[experiment] e.toml:10:1: unknown key \"sedes\": did you mean "
            "seeds?");
  EXPECT_EQ(refusal_with("[quick]", "[slow]"),
            "[experiment] e.toml:21:2: unknown section \"slow\": there are "
            "[[comparison]] and [quick]");
  EXPECT_EQ(refusal_of_experiment("title='a'\nclaim='b'\nsource='c'\n"),
            "[experiment] e.toml: there is no [[comparison]]");
}

TEST(ExperimentFile, MistakesInSettingsHaveTheirPlace) {
  EXPECT_EQ(refusal_with("train.lr=2e-3", "train.lrr=2e-3"),
            "[experiment] e.toml:11:32: unknown key \"train.lrr\": did you "
            "mean train.lr?");
  EXPECT_EQ(refusal_with("train.lr=2e-3", "train.lr=-1"),
            "[experiment] e.toml:11:32: train.lr is -1.0, must be above 0");
  EXPECT_EQ(refusal_with("train.lr=2e-3", "fast"),
            "[experiment] e.toml:11:32: \"fast\" is not KEY=VALUE, for "
            "example train.lr=3e-4");
  EXPECT_EQ(refusal_with("train.lr=2e-3", "train.seed=2"),
            "[experiment] e.toml:11:32: train.seed is no setting of a "
            "comparison");
  EXPECT_EQ(refusal_with("[\"softmax\"]", "[\"softmax\", 1]"),
            "[experiment] e.toml:19:1: activations is an array, must be a list "
            "of strings");
  EXPECT_EQ(refusal_with("[\"softmax\"]", "[]"),
            "[experiment] e.toml:19:1: activations is empty");
  EXPECT_EQ(refusal_with("model.start=plain", "model.strat=plain"),
            "[experiment] e.toml:9:16: unknown key \"model.strat\": did you "
            "mean model.start?");
  EXPECT_EQ(refusal_with("model.start=plain", "model.heads=7"),
            "[experiment] e.toml:9:16: model.dim 128 is not a multiple of "
            "model.heads 7");
  EXPECT_EQ(refusal_with("x^2{model.start=plain}", "x^2"),
            "[experiment] e.toml:8:1: x^2 occurs twice");
  EXPECT_EQ(refusal_with("x^2{model.start=plain}", "x^"),
            "[experiment] e.toml:9:16: \"x^\": [formula] a power is a "
            "whole number, as in x^3");
  EXPECT_EQ(refusal_with("decay=0.05,0.1", "decay=0.05"),
            "[experiment] e.toml:12:1: train.weight_decay has one value, must "
            "have two at least: --set changes a single one");
}

TEST(ExperimentFile, TheQuickVersionIsCheckedWhenItIsAskedFor) {
  EXPECT_EQ(refusal_with("model.dim=16", "model.dim=0"), "");
  EXPECT_EQ(
      refusal_with("model.patch=8", "model.patch=0", ExperimentSize::kQuick),
      "[experiment] e.toml:14:10: model.patch is 0, must be from 1 to 4096");
  EXPECT_EQ(refusal_with("seeds = 2\nact", "seeds = \"2\"\nact"),
            "[experiment] e.toml:22:1: seeds is a string, must be an integer");
}

TEST(ExperimentFile, AllMistakesAreToldAtOnce) {
  std::string text = kGood;
  for (const auto& [from, to] :
       {std::pair{"title", "titel"}, std::pair{"train.lr=", "train.lrr="},
        std::pair{"\"sotu\"", "\"sot\""}}) {
    text.replace(text.find(from), std::string(from).size(), to);
  }
  const std::string refusal = refusal_of_experiment(text);
  EXPECT_EQ(refusal.substr(0, 25), "[experiment] 4 problems:\n") << refusal;
}

TEST(ExperimentFolder, IsFoundByItsFile) {
  const test::TemporaryFolder folder;
  folder.write("b/experiment.toml", kGood);
  folder.write("a/experiment.toml", kGood);
  folder.write("c/README.md", "");
  const auto found = find_experiments(folder.path());
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0], folder / "a");
  EXPECT_EQ(read_experiment(found[1]).name, "b");
  EXPECT_NE(message_of<ConfigError>([&] {
              read_experiment(folder / "c");
            }).find("experiment.toml"),
            std::string::npos);
}

// What can be run of a comparison, without running it.
void check_comparison(const ExperimentComparison& comparison) {
  for (const GridSetting& setting : settings_of(comparison.grid)) {
    for (const Arm& arm : comparison.arms) {
      EXPECT_NO_THROW(check_config(arm_config(comparison.base, arm, setting)));
    }
  }
}

TEST(ShippedExperiments, AreRight) {
  const fs::path folder = fs::path(POLYATTN_SOURCE_DIR) / "experiments";
  const auto found = find_experiments(folder);
  EXPECT_GE(found.size(), 6U);
  const std::string table = test::read_text(folder / "README.md");
  for (const fs::path& path : found) {
    const Experiment whole = read_experiment(path);
    for (const auto& comparison : whole.comparisons) {
      check_comparison(comparison);
    }
    const Experiment quick = read_experiment(path, ExperimentSize::kQuick);
    for (const auto& comparison : quick.comparisons) {
      check_comparison(comparison);
      EXPECT_LE(comparison.base.train.steps, 10)
          << path << " " << comparison.name;
      EXPECT_EQ(comparison.seeds, 1) << path;
    }
    // Each says what it is, and has its row.
    EXPECT_NE(test::read_text(path / "README.md").find(whole.claim),
              std::string::npos)
        << path;
    EXPECT_NE(table.find("(" + whole.name + "/README.md)"), std::string::npos)
        << path;
  }
}

}  // namespace experiment_test
}  // namespace polyattn::run
