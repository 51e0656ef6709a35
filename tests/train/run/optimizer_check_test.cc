#include "train/run/optimizer_check.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "train/run/config.h"

namespace polyattn::run {
namespace optimizer_check_test {

// Sizes and data are no part of it: any task will do.
Config with_lbfgs() {
  Config config;
  config.train.optimizer = "lbfgs";
  return config;
}

std::vector<std::string> problems_of(const Config& config) {
  Config defaults;
  defaults.train.optimizer = "lbfgs";
  std::vector<std::string> messages;
  for (const BadValue& bad : optimizer_problems(config, defaults)) {
    messages.push_back(bad.message);
  }
  return messages;
}

TEST(OptimizerProblems, TakesWhatFits) {
  Config config = with_lbfgs();
  EXPECT_TRUE(problems_of(config).empty());
  config.train.history_size = 20;
  config.train.line_search_steps = 40;
  EXPECT_TRUE(problems_of(config).empty());
  config.train.adam_steps = 100;
  config.train.lr = 1e-4;
  config.train.clip = 0;
  EXPECT_TRUE(problems_of(config).empty());
  config.train.steps = 101;
  EXPECT_TRUE(problems_of(config).empty());
  Config adam;
  adam.train.lr = 1e-4;
  adam.train.ema = 0.9;
  adam.train.accumulate = 2;
  EXPECT_TRUE(problems_of(adam).empty());
}

TEST(OptimizerProblems, RefusesWhatChangesTheLossFromStepToStep) {
  Config config = with_lbfgs();
  config.model.dropout = 0.1;
  config.train.accumulate = 4;
  config.train.autocast = "bf16";
  const std::string because =
      ", but train.optimizer is lbfgs, which needs the same loss in every "
      "step: leave it at ";
  EXPECT_EQ(problems_of(config),
            (std::vector<std::string>{
                "model.dropout is 0.1" + because + "0.0",
                "train.accumulate is 4" + because + "1",
                "train.autocast is \"bf16\"" + because + "\"none\""}));
  config = with_lbfgs();
  config.model.attention_dropout = 0.5;
  config.model.drop_path = 0.1;
  config.train.ema = 0.99;
  EXPECT_EQ(problems_of(config).size(), 3U);
}

TEST(OptimizerProblems, RefusesWhatNobodyHeeds) {
  Config config = with_lbfgs();
  config.train.lr = 0.5;
  EXPECT_EQ(problems_of(config),
            (std::vector<std::string>{
                "train.lr is 0.5, but train.optimizer is lbfgs, which finds "
                "the length of its steps by itself, and train.adam_steps is 0: "
                "leave it out"}));
  Config adam;
  adam.train.history_size = 7;
  adam.train.adam_steps = 3;
  EXPECT_EQ(problems_of(adam),
            (std::vector<std::string>{
                "train.history_size is 7, but train.optimizer is adamw: leave "
                "it out",
                "train.adam_steps is 3, but train.optimizer is adamw: leave it "
                "out"}));
}

TEST(OptimizerProblems, AWarmStartLeavesStepsToLbfgs) {
  Config config = with_lbfgs();
  config.train.steps = 50;
  config.train.adam_steps = 50;
  EXPECT_EQ(problems_of(config),
            (std::vector<std::string>{"train.adam_steps 50 leave L-BFGS none "
                                      "of the 50 of train.steps"}));
}

}  // namespace optimizer_check_test
}  // namespace polyattn::run
