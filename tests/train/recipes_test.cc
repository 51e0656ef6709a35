// The published recipes in configs/: they train on small files of ImageNet's
// layout, a model of their family that is small, and go on to the same bits.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "data/made_files.h"
#include "support/records.h"
#include "train/small_tasks.h"
#include "train/trainer.h"

namespace polyattn::train::recipes_test {

namespace fs = std::filesystem;

struct Recipe {
  const char* file;
  const char* name;  // of the small model
};

void PrintTo(const Recipe& recipe, std::ostream* out) { *out << recipe.file; }

class Recipes : public ::testing::TestWithParam<Recipe> {
 protected:
  void SetUp() override {
    Random random(1, Stream::kOrder, 0);
    for (const char* wnid : {"n01440764", "n01443537"}) {
      const std::string name(wnid);
      for (int i = 0; i < 4; ++i) {
        const std::string number = std::to_string(i);
        folder_.write("data/train/" + name + "/" + number + ".JPEG",
                      image(random));
        folder_.write("data/val/" + name + "/" + number + ".JPEG",
                      image(random));
      }
    }
    std::vector<run::Setting> settings = {
        {"task.path", (folder_ / "data").string()},
        {"task.image_size", "32"},
        {"task.resize", "36"},
        {"model.name", GetParam().name},
        {"train.threads", "2"},
        {"train.batch", "4"},
        {"train.accumulate", "1"},
        {"train.steps", "2"},
        {"record.every", "1"},
        {"record.checkpoint", "1"}};
    if (std::string(GetParam().name) == "vit") {
      for (const auto& [key, value] : {std::pair{"dim", "24"},
                                       {"heads", "2"},
                                       {"depth", "2"},
                                       {"mlp", "48"},
                                       {"patch", "4"}}) {
        settings.push_back({std::string("model.") + key, value});
      }
    }
    config_ = run::read_config(
        fs::path(POLYATTN_SOURCE_DIR) / "configs" / GetParam().file, settings);
  }

  static std::string image(Random& random) {
    constexpr std::uint32_t kWidth = 80, kHeight = 70;
    std::string pixels(std::size_t{kWidth} * kHeight * 3, '\0');
    for (char& level : pixels) level = static_cast<char>(random.below(256));
    return data::test::jpeg_bytes(kWidth, kHeight, 3, pixels);
  }

  run::RunInfo run(const char* name, int steps) {
    int asked = 0;
    Job job;
    job.config = config_;
    job.data = load_task_data(config_.task);
    job.folder = folder_ / name;
    job.resume = true;
    job.stop = [&] { return ++asked > steps; };
    return train(job);
  }

  test::TemporaryFolder folder_;
  run::Config config_;
};

TEST_P(Recipes, TrainAndResume) {
  const run::RunInfo whole = run("whole", 100);
  EXPECT_EQ(whole.state, run::RunState::kFinished);
  ASSERT_TRUE(whole.result);
  EXPECT_TRUE(std::isfinite(whole.result->loss));
  EXPECT_EQ(run("parts", 1).state, run::RunState::kInterrupted);
  EXPECT_EQ(run("parts", 100).state, run::RunState::kFinished);
  EXPECT_EQ(polyattn::test::timeless(folder_ / "parts"),
            polyattn::test::timeless(folder_ / "whole"));
}

INSTANTIATE_TEST_SUITE_P(
    Config, Recipes,
    ::testing::Values(Recipe{"imagenet-deit-tiny.toml", "vit"},
                      Recipe{"imagenet-swin-tiny.toml", "swin-tiny32"},
                      Recipe{"imagenet-vit-base.toml", "vit"},
                      Recipe{"imagenet-xcit-small.toml", "xcit-tiny32"}));

}  // namespace polyattn::train::recipes_test
