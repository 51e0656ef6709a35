// Differential equations as a task: data, loss, runs that learn and resume bit
// for bit, evaluation, solution and problem in the folder, what is refused.
#include "train/physics_task.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "data/sets.h"
#include "nn/support.h"
#include "support/message_of.h"
#include "support/records.h"
#include "train/evaluate_run.h"
#include "train/physics_field.h"
#include "train/small_tasks.h"
#include "train/trainer.h"

namespace polyattn::train {
namespace physics_task_test {

namespace fs = std::filesystem;
using test::contains;
using test::message_of;

run::Config config_of(const char* task, const char* model = "pinnsformer") {
  run::Config config = run::default_config(task, model);
  config.task.points = 7;
  config.task.test_points = 9;
  if (config.model.name == "pinnsformer") config.model.dim = 8;
  config.model.mlp = 12;
  config.train.threads = 1;
  config.train.optimizer = "adamw";
  config.train.steps = 8;
  config.train.lr = 3e-3;
  config.record.every = 1;
  config.record.norms = 3;
  config.record.evaluate = 4;
  config.record.checkpoint = 3;
  return config;
}

Job job_of(const run::Config& config, const fs::path& folder) {
  Job job;
  job.config = config;
  job.data = load_task_data(config.task);
  job.folder = folder;
  job.resume = true;
  return job;
}

TEST(PhysicsTask, DataIsTheGridAndItsExactSolution) {
  const run::Config config = config_of("heat");
  const auto data = load_task_data(config.task);
  const auto examples = make_examples(data, config);
  EXPECT_EQ(examples->batches_per_epoch(), 1);
  EXPECT_EQ(examples->train_batch(3).inputs.sizes(),
            (std::vector<std::int64_t>{49, 2}));
  EXPECT_EQ(examples->test_count(), 81);
  EXPECT_STREQ(examples->unit(), "points");
  ASSERT_EQ(examples->test_batches(), 1);
  const Batch batch = examples->test_batch(0);
  const auto x = batch.inputs.select(1, 0), t = batch.inputs.select(1, 1);
  EXPECT_SAME(batch.targets, (-0.1 * M_PI * M_PI * t).exp() * (M_PI * x).sin());
}

// The terms of the whole grid, by hand from the network's own module.
TEST(PhysicsTask, LossIsThatOfTheModel) {
  for (const char* model : {"pinnsformer", "pinn"}) {
    SCOPED_TRACE(model);
    const run::Config config = config_of("wave", model);
    const auto data = load_task_data(config.task);
    const auto examples = make_examples(data, config);
    const auto network = make_network(config, shape_of(*data, config.task));
    const Batch batch = examples->train_batch(0);
    const auto terms = network->loss_terms(batch);
    ASSERT_EQ(terms.size(), 3U);
    const torch::Tensor loss = sum_of(terms);
    EXPECT_NEAR(loss.item<double>(),
                terms.at("boundary").item<double>() +
                    terms.at("initial").item<double>() +
                    terms.at("residual").item<double>(),
                1e-4 * loss.item<double>());
    loss.backward();
    test::expect_gradients(network->module());
    EXPECT_EQ(network->logits(batch).sizes(), (std::vector<std::int64_t>{49}));
  }
}

TEST(PhysicsTask, RunsLearnAndWriteWhatTheyFound) {
  const test::TemporaryFolder folder;
  for (const char* formula : {"softmax", "x^3/sqrt(N)"}) {
    SCOPED_TRACE(formula);
    run::Config config = config_of("heat");
    config.model.activation = formula;
    config.train.steps = 40;
    const fs::path run = folder / std::string(formula).substr(0, 3);
    const run::RunInfo info = train(job_of(config, run));
    ASSERT_EQ(info.state, run::RunState::kFinished);
    EXPECT_EQ(info.tokens, 5);
    EXPECT_EQ(info.test_count, 81);
    const auto records = polyattn::test::timeless(run);
    double first = 0, last = 0;
    for (const base::Json& record : records) {
      if (record.at("kind") == "eval") last = record.at("loss");
      if (record.at("kind") == "eval" && first == 0) first = last;
    }
    EXPECT_LT(last, first / 2);
    ASSERT_TRUE(info.result->relative_l2.has_value());
    EXPECT_LT(*info.result->relative_l2, 1);
    EXPECT_EQ(info.result->terms.size(), 3U);
    EXPECT_TRUE(fs::exists(run / "problem.toml"));
    const run::Solution solution =
        run::parse_solution(polyattn::test::read_text(run / "solution.json"));
    EXPECT_EQ(solution.columns.name, "x");
    EXPECT_EQ(solution.rows.name, "t");
    EXPECT_EQ(solution.rows.values.back(), 1);
    ASSERT_EQ(solution.exact.size(), 81U);
    // At x = 1/2 (column 4) and t = 1/4 (row 2).
    EXPECT_NEAR(solution.exact[2 * 9 + 4], std::exp(-0.1 * M_PI * M_PI * 0.25),
                1e-12);
    double error = 0, size = 0;
    for (std::size_t i = 0; i < 81; ++i) {
      error += std::pow(solution.predicted[i] - solution.exact[i], 2);
      size += std::pow(solution.exact[i], 2);
    }
    EXPECT_NEAR(std::sqrt(error / size), *info.result->relative_l2, 1e-9);
  }
}

TEST(PhysicsTask, NormsAreThoseOfBothAttentions) {
  const test::TemporaryFolder folder;
  run::Config config = config_of("heat");
  config.model.activation = "x^3/sqrt(N)";
  train(job_of(config, folder / "run"));
  bool start = false, norms = false;
  for (const base::Json& record : polyattn::test::timeless(folder / "run")) {
    if (record.at("kind") == "start") {
      start = true;
      EXPECT_EQ(record.at("gain").size(), 2U);
    }
    if (record.at("kind") != "norms") continue;
    norms = true;
    EXPECT_EQ(record.at("layer_kind"), base::Json({"token", "cross"}));
    EXPECT_EQ(record.at("weight_mean").size(), 2U);
  }
  EXPECT_TRUE(start);
  EXPECT_TRUE(norms);
}

TEST(PhysicsTask, ResumesBitForBit) {
  const test::TemporaryFolder folder;
  for (const auto& [model, optimizer] : {std::pair("pinnsformer", "adamw"),
                                         {"pinn", "adamw"},
                                         {"pinnsformer", "lbfgs"}}) {
    const std::string name = std::string(model) + "-" + optimizer;
    SCOPED_TRACE(name);
    run::Config config = config_of("convection", model);
    config.train.optimizer = optimizer;
    config.train.lr = 1e-3;  // what L-BFGS leaves alone
    train(job_of(config, folder / (name + "-whole")));
    for (int stop : {2, 1, 100}) {
      Job job = job_of(config, folder / (name + "-parts"));
      int asked = 0;
      job.stop = [&] { return ++asked > stop; };
      train(job);
    }
    EXPECT_EQ(polyattn::test::timeless(folder / (name + "-parts")),
              polyattn::test::timeless(folder / (name + "-whole")));
    EXPECT_EQ(
        polyattn::test::read_text(folder / (name + "-parts/solution.json")),
        polyattn::test::read_text(folder / (name + "-whole/solution.json")));
  }
}

TEST(PhysicsTask, IsEvaluatedByTheProblemThatItBeganWith) {
  const test::TemporaryFolder folder;
  const fs::path file = folder / "mine.toml";
  std::string text(physics::problem_text("heat"));
  std::ofstream(file) << text;
  run::Config config = config_of("problem");
  config.task.path = file.string();
  const run::RunInfo info = train(job_of(config, folder / "run"));
  const auto evaluate = [&] {
    return evaluate_run({.folder = folder / "run", .path = ""}).evaluation;
  };
  EXPECT_EQ(evaluate(), *info.result);
  fs::remove(file);
  EXPECT_EQ(evaluate(), *info.result);
}

TEST(PhysicsTask, AnotherProblemInTheSameFileIsRefused) {
  const test::TemporaryFolder folder;
  const fs::path file = folder / "mine.toml";
  std::string text(physics::problem_text("heat"));
  std::ofstream(file) << text;
  run::Config config = config_of("problem");
  config.task.path = file.string();
  Job job = job_of(config, folder / "run");
  int asked = 0;
  job.stop = [&] { return ++asked > 4; };
  train(job);
  text.replace(text.find("alpha = 0.1"), 11, "alpha = 0.2");
  std::ofstream(file) << text;
  EXPECT_TRUE(contains(message_of<run::RecordError>(
                           [&] { train(job_of(config, folder / "run")); }),
                       "problem.toml is another problem than that of the "
                       "config: the run began with it"));
}

TEST(PhysicsTask, RefusesProblemsThatAreNone) {
  run::TaskConfig task = config_of("problem").task;
  EXPECT_EQ(message_of<data::DataError>([&] { load_task_data(task); }),
            "[train] task.path is empty: it must be the file of a problem, as "
            "those in configs/problems/");
  const test::TemporaryFolder folder;
  task.path = (folder / "wrong.toml").string();
  std::string text(physics::problem_text("heat"));
  text.replace(text.find("alpha*u_xx"), 10, "2*alpha*u_xx");
  std::ofstream(task.path) << text;
  EXPECT_TRUE(contains(
      message_of<run::ConfigError>([&] { load_task_data(task); }),
      "the exact solution \"exp(-alpha*pi^2*t)*sin(pi*x)\" does not fit the "
      "equation \"u_t = 2*alpha*u_xx\""));
}

}  // namespace physics_task_test
}  // namespace polyattn::train
