#include "train/run_norms.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "train/small_tasks.h"
#include "train/trainer.h"

namespace polyattn::train::run_norms_test {

using testing::TemporaryFolder;

// A short run on a text in a file, where measure_run_norms() finds it again.
class RunNormsTest : public ::testing::Test {
 protected:
  void train_on_text() {
    std::string text;
    for (int i = 0; i < 400; ++i) text += "abcdefgh\n";
    config_ = testing::text_config();
    config_.task.name = "text";
    config_.task.path = folder_.write("text.txt", text).string();
    Job job;
    job.config = config_;
    job.data = load_task_data(config_.task);
    job.folder = folder_ / "run";
    train(job);
  }

  TemporaryFolder folder_;
  run::Config config_;
};

TEST_F(RunNormsTest, AreThoseOfEveryLayerAndHead) {
  train_on_text();
  for (const bool best : {false, true}) {
    const RunNorms norms =
        measure_run_norms({.folder = folder_ / "run", .best = best});
    EXPECT_EQ(norms.task, "text");
    EXPECT_EQ(norms.activation, "softmax");
    EXPECT_EQ(norms.step, best ? -1 : config_.train.steps);
    EXPECT_EQ(norms.tokens, config_.task.context);
    EXPECT_EQ(norms.head_dim, config_.model.dim / config_.model.heads);
    EXPECT_TRUE(norms.causal);
    EXPECT_GT(norms.examples, 0);
    ASSERT_EQ(norms.layers.size(),
              static_cast<std::size_t>(config_.model.depth));
    for (const LayerNorms& layer : norms.layers) {
      ASSERT_EQ(layer.weight_max.size(),
                static_cast<std::size_t>(config_.model.heads));
      for (const double norm : layer.weight_max) {
        EXPECT_GE(norm, 1);  // the first row of a causal softmax is (1, 0, ...)
        EXPECT_LE(norm, std::sqrt(static_cast<double>(norms.tokens)) + 1e-4);
      }
      for (const double score : layer.max_abs_score) EXPECT_GT(score, 0);
      EXPECT_EQ(layer.gradient, 0);
    }
  }
}

// On the same queries and keys: twice the weights, twice the norm.
TEST_F(RunNormsTest, AnotherActivationIsMeasuredOnTheSameScores) {
  train_on_text();
  const auto measure = [&](const char* formula) {
    return measure_run_norms({.folder = folder_ / "run", .other = formula})
        .roots;
  };
  const auto same = measure("softmax");
  const auto cube = measure("x^3/sqrt(N)");
  const auto twice = measure("2x^3/sqrt(N)");
  ASSERT_EQ(same.size(), static_cast<std::size_t>(config_.model.depth));
  for (std::size_t i = 0; i < same.size(); ++i) {
    EXPECT_GT(same[i].own, 1);
    EXPECT_NEAR(same[i].other, same[i].own, 1e-5);
    EXPECT_EQ(cube[i].own, same[i].own);
    EXPECT_GT(cube[i].other, 0);
    EXPECT_NEAR(twice[i].other, 2 * cube[i].other, 1e-5 * twice[i].other);
  }
}

TEST_F(RunNormsTest, ARunMustBeThere) {
  EXPECT_THROW(measure_run_norms({.folder = folder_ / "nowhere"}),
               run::ConfigError);
}

}  // namespace polyattn::train::run_norms_test
