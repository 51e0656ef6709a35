// Runs by L-BFGS: interrupted and gone on with, and steps that cannot be made.
#include <gtest/gtest.h>

#include <filesystem>

#include "polyattn/models/state_file.h"
#include "support/records.h"
#include "support/temporary_folder.h"
#include "train/checkpoint.h"
#include "train/network.h"
#include "train/prefetch.h"
#include "train/step.h"
#include "train/trainer.h"

namespace polyattn::train::lbfgs_run_test {

namespace fs = std::filesystem;
run::Config config_of_run() {
  run::Config config = run::default_config("convection");
  config.task.points = 6;
  config.task.test_points = 6;
  config.model.dim = 8;
  config.model.mlp = 12;
  config.train.threads = 1;
  config.train.steps = 10;
  config.train.adam_steps = 2;
  config.train.history_size = 4;
  config.record.every = 1;
  config.record.evaluate = 5;
  config.record.checkpoint = 4;
  return config;
}

class LbfgsRun : public ::testing::Test {
 protected:
  run::RunInfo run(const char* name, int steps) {
    int asked = 0;
    Job job;
    job.config = config_of_run();
    job.data = load_task_data(job.config.task);
    job.folder = folder_ / name;
    job.resume = true;
    job.stop = [&] { return ++asked > steps; };
    return train(job);
  }

  models::NamedTensors end_of(const char* name) const {
    return models::load_tensors(folder_ / name / "checkpoints" /
                                "step-00000010.safetensors");
  }

  test::TemporaryFolder folder_;
};

// At the end of the warm start, in the middle of it, before the history is
// full, and after every step.
TEST_F(LbfgsRun, GoesOnFromAnyStepToTheSameBits) {
  EXPECT_EQ(run("whole", 100).state, run::RunState::kFinished);
  EXPECT_EQ(run("parts", 1).step, 1);
  EXPECT_EQ(run("parts", 1).step, 2);
  EXPECT_EQ(run("parts", 2).step, 4);
  while (run("parts", 1).state != run::RunState::kFinished) {
  }
  EXPECT_EQ(test::timeless(folder_ / "parts"),
            test::timeless(folder_ / "whole"));
  const auto expected = end_of("whole");
  const auto found = end_of("parts");
  ASSERT_EQ(found.size(), expected.size());
  EXPECT_EQ(expected.at("lbfgs.s").size(0), 4);
  EXPECT_TRUE(without_prefix(expected, "adam.").empty());
  for (const auto& [name, tensor] : expected) {
    EXPECT_TRUE(torch::equal(tensor, found.at(name))) << name;
  }
}

TEST_F(LbfgsRun, TheLossFalls) {
  run("whole", 100);
  double first = 0, last = 0;
  for (const base::Json& record :
       test::records_in(folder_ / "whole" / "metrics.jsonl")) {
    if (record.at("kind") != "train") continue;
    last = record.at("loss").get<double>();
    if (record.at("step") == 3) first = last;
    EXPECT_GT(record.at("lr"), 0);
  }
  EXPECT_LT(last, 0.8 * first);
}

// An optimizer that cannot find a step says why, and nobody looks for it again.
class Stuck : public Optimizer {
 public:
  OptimizerStep step(double /*lr*/, const Closure& closure) override {
    return {.loss = closure(), .diverged = true, .what = "stuck"};
  }
  models::NamedTensors state() const override { return {}; }
  std::function<void()> taking(const models::NamedTensors& /*tensors*/,
                               std::int64_t /*steps*/) override {
    return [] {};
  }
};

TEST(Stepper, HandsOnWhyAnOptimizerMadeNoStep) {
  const run::Config config = config_of_run();
  const auto data = load_task_data(config.task);
  const auto examples = make_examples(data, config);
  const auto network = make_network(config, shape_of(*data, config.task));
  Stuck optimizer;
  Stepper stepper(config, *network, optimizer, 10);
  Prefetcher batches(
      [&](std::int64_t index) { return examples->train_batch(index); }, 0, 10);
  const StepResult result = stepper.make(batches, 0, /*watch=*/true);
  EXPECT_EQ(result.diverged, "stuck");
  EXPECT_EQ(result.norms.size(), 2U);
}

}  // namespace polyattn::train::lbfgs_run_test
