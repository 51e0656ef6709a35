// experiment as a user meets it, and variants in compare.
#include <nlohmann/json.hpp>

#include "support/message_of.h"
#include "train/run/records.h"
#include "training.h"

namespace polyattn::cli {
namespace {

class Experimenting : public Training {
 protected:
  // Two comparisons on the small images; whole, it would take long.
  void write_experiment() const {
    const std::string path = "task.path=" + (folder_ / "data").string();
    folder_.write("experiments/powers/experiment.toml",
                  "title = 'Powers'\n"
                  "claim = 'A power is as good as softmax.'\n"
                  "source = 'us'\n"
                  "[[comparison]]\n"
                  "name = 'start'\n"
                  "task = 'fashion-mnist'\n"
                  "activations = ['softmax', 'x{model.start=plain}', 'x']\n"
                  "seeds = 9\n"
                  "settings = ['" +
                      path +
                      "', 'train.batch=16', 'model.patch=2']\n"
                      "[[comparison]]\n"
                      "name = 'rate'\n"
                      "task = 'fashion-mnist'\n"
                      "activations = ['softmax']\n"
                      "settings = ['" +
                      path +
                      "', 'train.batch=16', 'model.patch=2']\n"
                      "grid = ['train.lr=1e-5,1e-2']\n"
                      "[quick]\n"
                      "activations = 2\n"
                      "settings = ['train.steps=4', 'model.dim=8',\n"
                      "            'model.heads=2', 'model.depth=1',\n"
                      "            'model.mlp=8']\n");
  }

  // A build without the page says so first.
  nlohmann::json printed() const {
    return nlohmann::json::parse(log().substr(log().find("{\n")));
  }
};

TEST_F(Experimenting, RunsItsComparisonsAndWritesTheOutcome) {
  write_experiment();
  const std::vector<std::string> command = {
      "experiment", "run", "powers", "--quick", "--threads", "1", "--json"};
  ASSERT_EQ(run(command), 0) << log();
  const auto json = printed();
  EXPECT_EQ(json.at("experiment"), "powers");
  EXPECT_EQ(json.at("complete"), true);
  EXPECT_GT(json.at("core_hours"), 0);
  ASSERT_EQ(json.at("comparisons").size(), 2U);
  const auto& start = json.at("comparisons").at(0);
  EXPECT_EQ(start.at("name"), "start");
  ASSERT_EQ(start.at("rows").size(), 2U);
  EXPECT_EQ(start.at("rows").at(1).at("activation"), "x");
  EXPECT_EQ(start.at("rows").at(1).at("variant"), "model.start=plain");
  EXPECT_EQ(json.at("comparisons").at(1).at("grid").at("rows").size(), 1U);

  const fs::path out = folder_ / "runs/experiments-quick/powers";
  const auto info = run::read_run_info(out / "start/x-start-plain-seed1");
  EXPECT_EQ(info.variant, "model.start=plain");
  EXPECT_EQ(info.steps, 4);
  EXPECT_FALSE(run::read_run_info(out / "start/softmax-seed1").variant);
  const std::string outcome = test::read_text(out / "outcome.md");
  for (const char* text :
       {"# Powers\n\nA power is as good as softmax.\n\n- source: us\n",
        "polyattn experiment run powers --quick", "- 5 of 5 runs, ",
        "core-hours", "\n## start\n\n", "| `x{model.start=plain}` |",
        "\n## rate\n\n", "Settings were chosen on 10 %"}) {
    EXPECT_TRUE(test::contains(outcome, text)) << text << "\n" << outcome;
  }
  EXPECT_TRUE(fs::exists(out / "rate/comparison.json"));

  // The same again has nothing left to do.
  ASSERT_EQ(run(command), 0) << log();
  EXPECT_EQ(run::read_run_info(out / "start/x-start-plain-seed1").started,
            info.started);
}

// Those of the project's own whose data is made or comes with the build's
// packages.
TEST_F(Experimenting, RunsWhatTheProjectAsks) {
  const fs::path asked = fs::path(POLYATTN_SOURCE_DIR) / "experiments";
  for (const auto& [experiment, comparison] :
       {std::pair{"scaled-polynomials", "fashion-mnist"},
        std::pair{"scaled-polynomials", "listops"},
        std::pair{"length-generalisation", "recall"},
        std::pair{"long-range-arena", "listops"},
        std::pair{"long-range-arena", "pathfinder"}}) {
    SCOPED_TRACE(std::string(experiment) + ' ' + comparison);
    ASSERT_EQ(
        run({"experiment", "run", experiment, "--quick", "--only", comparison,
             "--experiments", asked.string(), "--threads", "1", "--json"}),
        0)
        << log();
    const auto json = printed();
    for (const auto& done : json.at("comparisons")) {
      if (done.at("name") != comparison) continue;
      ASSERT_GE(done.at("rows").size(), 2U) << log();
      EXPECT_EQ(done.at("rows").at(0).at("activation"), "softmax");
      EXPECT_EQ(done.at("rows").at(1).at("diverged"), 0) << log();
    }
    const std::string outcome = test::read_text(
        folder_ / "runs/experiments-quick" / experiment / "outcome.md");
    const std::string heading = std::string("\n## ") + comparison + "\n\n";
    EXPECT_TRUE(test::contains(outcome, heading)) << outcome;
    EXPECT_FALSE(test::contains(outcome, heading + "Not run yet.")) << outcome;
  }
}

TEST_F(Experimenting, RunsOneComparisonIntoAFolder) {
  write_experiment();
  ASSERT_EQ(run({"experiment", "run", "powers", "--quick", "--only", "start",
                 "--out", "here", "--threads", "1"}),
            0)
      << log();
  for (const char* text : {"\nstart\n", "x{model.start=plain}  ", " reaches ",
                           "here/outcome.md"}) {
    EXPECT_TRUE(test::contains(log(), text)) << text << "\n" << log();
  }
  EXPECT_FALSE(fs::exists(folder_ / "here/rate"));
  EXPECT_TRUE(test::contains(test::read_text(folder_ / "here/outcome.md"),
                             "\n## rate\n\nNot run yet.\n"));
}

TEST_F(Experimenting, ListsWhatThereIsAndWhatIsDone) {
  write_experiment();
  ASSERT_EQ(run({"experiment", "list"}), 0) << log();
  EXPECT_EQ(log(),
            "experiment  title   comparisons  runs  done\n"
            "----------  ------  -----------  ----  ----\n"
            "powers      Powers            2    32     0\n");
  run::RunInfo info;
  info.state = run::RunState::kDiverged;
  info.threads = 2;
  info.train_seconds = 1800;
  const fs::path run_folder = folder_ / "runs/experiments/powers/start/x-seed9";
  fs::create_directories(run_folder);
  run::write_run_info(run_folder, info);
  ASSERT_EQ(run({"experiment", "list", "--json"}), 0) << log();
  const auto json = nlohmann::json::parse(log());
  EXPECT_EQ(json.at(0).at("runs"), 32);
  EXPECT_EQ(json.at(0).at("done"), 1);
  EXPECT_EQ(json.at(0).at("core_hours"), 1);
}

TEST_F(Experimenting, MistakesAreSaidBeforeAnythingRuns) {
  const auto refused = [&](const std::vector<std::string>& arguments,
                           const std::string& text) {
    EXPECT_EQ(run(arguments), 2) << log();
    EXPECT_TRUE(test::contains(log(), text)) << text << "\n" << log();
  };
  refused({"experiment", "list"}, "--experiments");
  write_experiment();
  refused({"experiment", "run", "power"}, "did you mean powers?");
  refused({"experiment", "run", "powers", "--only", "rates"},
          "did you mean rate?");
  folder_.write("experiments/bad/experiment.toml",
                "title = 'x'\nclaim = ''\n[[comparison]]\n");
  refused({"experiment", "run", "bad"},
          "experiments/bad/experiment.toml:2:1: claim is empty");
  refused(small({"compare", "--activations", "x{train.seed=2}"}),
          "cannot be varied");
  refused(small({"compare", "--activations", "x{train.lr=1"}), "do not match");
  refused(small({"compare", "--activations", "x{train.lr=1}", "--grid",
                 "train.lr=1,2"}),
          "leave out one of them");
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

// A run of a comparison that goes on alone stays what it was.
TEST_F(Experimenting, AVariantSurvivesItsResumption) {
  const fs::path out = folder_ / "compare";
  auto arguments = small({"compare", "--activations", "x{model.start=plain}",
                          "--seeds", "1", "--out", out.string()});
  const fs::path one = out / "x-start-plain-seed1";
  arguments.insert(arguments.end(), {"--set", "train.steps=100000"});
  const pid_t child = start(arguments);
  wait_for_bytes(one / "metrics.jsonl", 1000, child);
  ::kill(child, SIGTERM);
  EXPECT_EQ(wait_for(child), 128 + SIGTERM) << log();
  const pid_t again = start({"train", one.string(), "--resume"});
  wait_for_bytes(one / "metrics.jsonl",
                 fs::file_size(one / "metrics.jsonl") + 500, again);
  ::kill(again, SIGTERM);
  EXPECT_EQ(wait_for(again), 128 + SIGTERM) << log();
  EXPECT_EQ(run::read_run_info(one).variant, "model.start=plain");
}

}  // namespace
}  // namespace polyattn::cli
