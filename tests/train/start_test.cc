// Runs whose first scores are measured.
#include <gtest/gtest.h>

#include <cmath>

#include "support/records.h"
#include "train/small_tasks.h"
#include "train/trainer.h"

namespace polyattn::train::start_test {

using testing::TemporaryFolder;

struct StartCase {
  run::Config config;
  std::shared_ptr<const TaskData> data;
};

std::vector<StartCase> start_cases() {
  std::vector<StartCase> cases = {
      {testing::image_config(), testing::image_data()},
      {testing::text_config(), testing::text_data()},
      {testing::sequence_config(), testing::sequence_data()},
      {testing::pair_config(), testing::pair_data()}};
  for (StartCase& c : cases) {
    c.config.model.activation = "x^3/sqrt(N)";
    c.config.model.initialisation = "xavier";
    c.config.model.qk_gain = 3;
    c.config.train.ema = 0.9;
    c.config.train.steps = 4;
  }
  return cases;
}

run::RunInfo train_in(const std::filesystem::path& folder, const StartCase& c,
                      int steps = 100) {
  Job job;
  job.config = c.config;
  job.data = c.data;
  job.folder = folder;
  job.resume = true;
  job.stop = [&] { return steps-- <= 0; };
  return train(job);
}

// The record of the start, or null.
base::Json start_of(const std::filesystem::path& folder) {
  base::Json found;
  for (const auto& record : polyattn::test::timeless(folder)) {
    if (record.at("kind") != "start") continue;
    EXPECT_TRUE(found.is_null()) << "it is there twice";
    found = record;
  }
  return found;
}

TEST(Start, IsAtTheNormOfSoftmaxAndRecorded) {
  for (StartCase c : start_cases()) {
    SCOPED_TRACE(c.config.task.name);
    const TemporaryFolder folder;
    c.config.model.start_factor = 0.5;
    train_in(folder / "run", c);
    const base::Json start = start_of(folder / "run");
    ASSERT_TRUE(start.is_object());
    EXPECT_EQ(start.at("step"), 0);
    EXPECT_EQ(start.at("factor"), 0.5);
    ASSERT_EQ(start.at("gain").size(),
              static_cast<std::size_t>(c.config.model.depth));
    for (std::size_t i = 0; i < start.at("gain").size(); ++i) {
      ASSERT_EQ(start.at("gain")[i].size(), 2U);
      for (std::size_t h = 0; h < 2; ++h) {
        const double norm = start.at("weight")[i][h];
        EXPECT_LT(start.at("gain")[i][h], 1);
        EXPECT_LT(norm, start.at("weight_before")[i][h]);
        EXPECT_NEAR(norm / start.at("softmax")[i][h].get<double>(), 0.5, 1e-3);
      }
    }
  }
}

// Also if it stopped before its first step: the start is not made twice.
TEST(Start, AnInterruptedRunKeepsIt) {
  for (const StartCase& c : start_cases()) {
    SCOPED_TRACE(c.config.task.name);
    const TemporaryFolder folder;
    train_in(folder / "whole", c);
    for (int i = 0; i < 8; ++i) train_in(folder / "parts", c, i % 2);
    EXPECT_EQ(start_of(folder / "parts"), start_of(folder / "whole"));
    EXPECT_EQ(run::read_run_info(folder / "parts").result,
              run::read_run_info(folder / "whole").result);
  }
}

TEST(Start, PlainAndSoftmaxAreAsDrawn) {
  StartCase c = start_cases().front();
  const TemporaryFolder folder;
  c.config.model.start = "plain";
  train_in(folder / "plain", c);
  EXPECT_TRUE(start_of(folder / "plain").is_null());
  c.config.model.start = "matched";
  c.config.model.activation = "softmax";
  train_in(folder / "softmax", c);
  EXPECT_TRUE(start_of(folder / "softmax").is_null());
}

TEST(Start, AFirstBatchThatOverflowsIsRefusedBeforeAnythingRuns) {
  StartCase c = start_cases().front();
  const TemporaryFolder folder;
  c.config.model.activation = "x^8";
  c.config.model.qk_gain = 1e6;
  try {
    train_in(folder / "run", c);
    FAIL() << "no error";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("layer 0, head 0: the norm"),
              std::string::npos)
        << error.what();
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "run/config.toml"));
}

}  // namespace polyattn::train::start_test
