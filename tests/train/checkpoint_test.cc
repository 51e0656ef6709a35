#include "train/checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "train/small_tasks.h"

namespace polyattn::train::checkpoint_test {

namespace fs = std::filesystem;

Checkpoint make_checkpoint(std::int64_t step) {
  Checkpoint checkpoint;
  Progress& p = checkpoint.progress;
  p.info.step = step;
  p.metrics_bytes = 1234;
  p.loss_sum = 0.1 + 0.2;  // no short decimal
  p.loss_count = 7;
  p.best = 1.0 / 3;
  p.info.result = {.loss = 2.0 / 3, .accuracy = 0.7};
  p.info.train_seconds = 12.5;
  p.info.max_weight_norm = std::numeric_limits<double>::infinity();
  checkpoint.tensors["model.w"] = torch::full({2, 3}, step);
  checkpoint.tensors["adam.m.w"] = torch::randn({2, 3});
  return checkpoint;
}

TEST(Checkpoints, ComeBackBitForBit) {
  const testing::TemporaryFolder folder;
  Checkpoints checkpoints(folder / "c", 2);
  const Checkpoint saved = make_checkpoint(40);
  checkpoints.save(saved);
  std::vector<std::string> damaged;
  const auto loaded = checkpoints.latest(damaged);
  ASSERT_TRUE(loaded);
  EXPECT_TRUE(damaged.empty());
  EXPECT_EQ(loaded->progress.info.step, 40);
  EXPECT_EQ(loaded->progress.metrics_bytes, 1234);
  EXPECT_EQ(loaded->progress.loss_sum, 0.1 + 0.2);
  EXPECT_EQ(loaded->progress.loss_count, 7);
  EXPECT_EQ(loaded->progress.best, 1.0 / 3);
  EXPECT_EQ(loaded->progress.info.result, saved.progress.info.result);
  EXPECT_TRUE(std::isinf(loaded->progress.info.max_weight_norm));
  for (const auto& [name, tensor] : saved.tensors) {
    EXPECT_TRUE(torch::equal(loaded->tensors.at(name), tensor)) << name;
  }
}

TEST(Checkpoints, KeepTheLastFew) {
  const testing::TemporaryFolder folder;
  Checkpoints checkpoints(folder / "c", 2);
  for (const std::int64_t step : {10, 20, 30, 40}) {
    checkpoints.save(make_checkpoint(step));
  }
  int files = 0;
  for (const auto& entry : fs::directory_iterator(folder / "c")) {
    ++files;
    const std::string name = entry.path().filename().string();
    EXPECT_TRUE(name.find("00000030") != std::string::npos ||
                name.find("00000040") != std::string::npos)
        << name;
  }
  EXPECT_EQ(files, 4);
}

TEST(Checkpoints, NothingIsThereAtFirst) {
  const testing::TemporaryFolder folder;
  std::vector<std::string> damaged;
  EXPECT_FALSE(Checkpoints(folder / "c", 2).latest(damaged));
}

void overwrite(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

TEST(Checkpoints, ADamagedOneFallsBackToTheOneBefore) {
  for (const char* text :
       {"", "{", "[]", R"({"format":1})", R"({"format":2,"step":20})",
        R"({"format":1,"step":20,"metrics_bytes":1e300})",
        R"({"format":1,"step":-20,"metrics_bytes":0})"}) {
    const testing::TemporaryFolder folder;
    Checkpoints checkpoints(folder / "c", 3);
    checkpoints.save(make_checkpoint(10));
    checkpoints.save(make_checkpoint(20));
    overwrite(folder / "c/step-00000020.json", text);
    std::vector<std::string> damaged;
    const auto loaded = checkpoints.latest(damaged);
    ASSERT_TRUE(loaded) << text;
    EXPECT_EQ(loaded->progress.info.step, 10);
    ASSERT_EQ(damaged.size(), 1U);
    EXPECT_NE(damaged[0].find("step-00000020.json"), std::string::npos);
  }
}

TEST(Checkpoints, CutTensorsFallBackToo) {
  const testing::TemporaryFolder folder;
  Checkpoints checkpoints(folder / "c", 3);
  checkpoints.save(make_checkpoint(10));
  checkpoints.save(make_checkpoint(20));
  const fs::path file = folder / "c/step-00000020.safetensors";
  fs::resize_file(file, fs::file_size(file) - 1);
  std::vector<std::string> damaged;
  const auto loaded = checkpoints.latest(damaged);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->progress.info.step, 10);
}

// The steps of the checkpoints that are there, by their JSON.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Checkpoints, ADamagedOneDoesNotTakeThePlaceOfAWholeOne) {
  const testing::TemporaryFolder folder;
  for (const std::int64_t step : {10, 20, 30}) {
    Checkpoints(folder / "c", 3).save(make_checkpoint(step));
  }
  for (const char* name : {"step-00000020", "step-00000030"}) {
    fs::resize_file(folder / "c" / (std::string(name) + ".safetensors"), 9);
  }
  Checkpoints checkpoints(folder / "c", 2);
  std::vector<std::string> damaged;
  ASSERT_EQ(checkpoints.latest(damaged)->progress.info.step, 10);
  EXPECT_EQ(damaged.size(), 2U);
  EXPECT_EQ(names_in(folder / "c").size(), 6U);  // nothing better yet
  checkpoints.save(make_checkpoint(11));
  EXPECT_EQ(names_in(folder / "c"),
            (std::vector<std::string>{
                "step-00000010.json", "step-00000010.safetensors",
                "step-00000011.json", "step-00000011.safetensors"}));
}

TEST(Checkpoints, OneThatCannotBeUsedIsSkipped) {
  const testing::TemporaryFolder folder;
  Checkpoints checkpoints(folder / "c", 3);
  checkpoints.save(make_checkpoint(10));
  checkpoints.save(make_checkpoint(20));
  std::vector<std::string> damaged;
  const auto loaded =
      checkpoints.latest(damaged, [](const Checkpoint& checkpoint) {
        if (checkpoint.progress.info.step == 20)
          throw run::RecordError("too wide");
      });
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->progress.info.step, 10);
  ASSERT_EQ(damaged.size(), 1U);
  EXPECT_NE(damaged[0].find("too wide"), std::string::npos) << damaged[0];
}

// As it would be after a kill between the two files, and in the middle of one.
TEST(Checkpoints, TensorsWithoutTheirJsonAreNothing) {
  const testing::TemporaryFolder folder;
  Checkpoints checkpoints(folder / "c", 3);
  checkpoints.save(make_checkpoint(10));
  checkpoints.save(make_checkpoint(20));
  fs::remove(folder / "c/step-00000020.json");
  overwrite(folder / "c/step-00000030.safetensors", "half");
  overwrite(folder / "c/.step-00000040.json.tmp", "{");
  std::vector<std::string> damaged;
  EXPECT_EQ(checkpoints.latest(damaged)->progress.info.step, 10);
  EXPECT_TRUE(damaged.empty());
  checkpoints.remove_orphans();
  EXPECT_EQ(
      names_in(folder / "c"),
      (std::vector<std::string>{".step-00000040.json.tmp", "step-00000010.json",
                                "step-00000010.safetensors"}));
}

TEST(Checkpoints, PrefixesAreCutOff) {
  const auto found = without_prefix(make_checkpoint(1).tensors, "model.");
  EXPECT_EQ(found.size(), 1U);
  EXPECT_EQ(found.count("w"), 1U);
}

}  // namespace polyattn::train::checkpoint_test
