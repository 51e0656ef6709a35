// Runs that go on although their folder was damaged.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "polyattn/models/state_file.h"
#include "support/records.h"
#include "train/small_tasks.h"
#include "train/trainer.h"

namespace polyattn::train::resume_test {

namespace fs = std::filesystem;
using testing::image_data;

run::Config config_of_run() {
  run::Config config = testing::image_config();
  config.record.keep = 3;
  return config;
}

class Resume : public ::testing::Test {
 protected:
  void SetUp() override { run("whole", 100); }

  // Trains for so many steps, or to the end; earlier steps count.
  run::RunInfo run(const char* name, int steps) {
    int asked = 0;
    warnings_.clear();
    Job job;
    job.config = config_of_run();
    job.data = image_data();
    job.folder = folder_ / name;
    job.resume = true;
    job.stop = [&] { return ++asked > steps; };
    job.warn = [&](const std::string& text) { warnings_ += text + "\n"; };
    return train(job);
  }

  // A run that stopped after ten steps: checkpoints of 4, 8 and 10.
  fs::path stopped() {
    run("parts", 10);
    return folder_ / "parts" / "checkpoints";
  }

  std::vector<base::Json> records(const char* name) const {
    return polyattn::test::timeless(folder_ / name);
  }

  bool warned(const std::string& text) const {
    return warnings_.find(text) != std::string::npos;
  }

  void expect_the_same_end() {
    EXPECT_EQ(run("parts", 100).state, run::RunState::kFinished);
    EXPECT_EQ(records("parts"), records("whole"));
  }

  test::TemporaryFolder folder_;
  std::string warnings_;
};

void change_tensors(const fs::path& file,
                    const std::function<void(models::NamedTensors&)>& change) {
  models::NamedTensors tensors = models::load_tensors(file);
  change(tensors);
  models::save_tensors(file, tensors);
}

void drop(const fs::path& file, const std::string& prefix) {
  change_tensors(file, [&](models::NamedTensors& tensors) {
    std::erase_if(tensors, [&](const auto& entry) {
      return entry.first.starts_with(prefix);
    });
  });
}

TEST_F(Resume, GoesOnFromTheNewestWholeCheckpoint) {
  const fs::path checkpoints = stopped();
  fs::resize_file(checkpoints / "step-00000008.safetensors", 100);
  fs::resize_file(checkpoints / "step-00000010.safetensors", 100);
  EXPECT_EQ(run("parts", 1).step, 5);
  EXPECT_TRUE(warned("step-00000010.json")) << warnings_;
  EXPECT_TRUE(warned("step-00000008.json")) << warnings_;
  EXPECT_TRUE(warned("goes on from step 4")) << warnings_;
  EXPECT_TRUE(fs::exists(checkpoints / "step-00000005.json"));
  EXPECT_FALSE(fs::exists(checkpoints / "step-00000010.json"));
  EXPECT_EQ(run("parts", 1).step, 6);
  EXPECT_EQ(warnings_, "");
  expect_the_same_end();
}

TEST_F(Resume, ACheckpointOfAnotherModelIsSkipped) {
  const fs::path file = stopped() / "step-00000010.safetensors";
  change_tensors(file, [](models::NamedTensors& tensors) {
    for (auto& [name, tensor] : tensors) tensor = torch::zeros({3, 3});
  });
  EXPECT_EQ(run("parts", 1).step, 9);
  EXPECT_TRUE(warned("step-00000010.json")) << warnings_;
  EXPECT_TRUE(warned("goes on from step 8")) << warnings_;
  expect_the_same_end();
}

// One half of each fits: it must not be taken up.
TEST_F(Resume, WithoutAUsableCheckpointItBeginsAgain) {
  const fs::path checkpoints = stopped();
  drop(checkpoints / "step-00000010.safetensors", "adam.");
  drop(checkpoints / "step-00000008.safetensors", "model.");
  fs::resize_file(checkpoints / "step-00000004.safetensors", 0);
  EXPECT_EQ(run("parts", 1).step, 1);
  EXPECT_TRUE(warned("begins again at step 0")) << warnings_;
  expect_the_same_end();
}

TEST_F(Resume, ACheckpointFromBeyondThePlanIsSkipped) {
  const fs::path checkpoints = stopped();
  fs::copy_file(checkpoints / "step-00000010.safetensors",
                checkpoints / "step-00000099.safetensors");
  base::Json json =
      base::parse_json(test::read_text(checkpoints / "step-00000010.json"));
  json["step"] = 99;
  std::ofstream(checkpoints / "step-00000099.json") << json.dump();
  json["step"] = 11;
  json["metrics_bytes"] = 1'000'000'000;
  std::ofstream(checkpoints / "step-00000011.json") << json.dump();
  fs::copy_file(checkpoints / "step-00000010.safetensors",
                checkpoints / "step-00000011.safetensors");
  EXPECT_EQ(run("parts", 0).step, 10);
  EXPECT_TRUE(warned("it is of step 99, but the run has 12")) << warnings_;
  EXPECT_TRUE(warned("1000000000 bytes")) << warnings_;
  expect_the_same_end();
}

TEST_F(Resume, WhatAKilledProcessLeftIsRemoved) {
  const fs::path checkpoints = stopped();
  const std::vector<fs::path> leftovers = {
      checkpoints / "step-00000011.safetensors",
      checkpoints / "step-00000011.json.123.0.tmp",
      folder_ / "parts" / "run.json.123.0.tmp"};
  for (const fs::path& file : leftovers) std::ofstream(file) << "half";
  run("parts", 0);
  for (const fs::path& file : leftovers) EXPECT_FALSE(fs::exists(file)) << file;
  expect_the_same_end();
}

}  // namespace polyattn::train::resume_test
