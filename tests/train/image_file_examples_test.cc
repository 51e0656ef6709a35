// Images that are decoded when they are needed.
#include "train/image_file_examples.h"

#include <gtest/gtest.h>

#include <set>

#include "data/load.h"
#include "data/made_files.h"
#include "support/message_of.h"
#include "support/records.h"
#include "train/small_tasks.h"
#include "train/trainer.h"

namespace polyattn::train::image_file_examples_test {

namespace fs = std::filesystem;
using data::test::jpeg_bytes;
using data::test::png_bytes;

// Two classes of 12 images, of several kinds and sizes, and 5 to test on.
class ImageFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    Random random(1, Stream::kOrder, 0);
    for (int i = 0; i < 12; ++i) {
      for (const char* name : {"a", "b"}) {
        folder_.write("train/" + std::string(name) + "/" +
                          std::to_string(10 + i) + ".JPEG",
                      image(random));
      }
    }
    for (int i = 0; i < 5; ++i) {
      folder_.write("val/b/" + std::to_string(i) + ".JPEG", image(random));
    }
    config_ = run::default_config("tiny-imagenet");
    config_.task.path = folder_.path();
    config_.task.image_size = 8;
    config_.task.resize = 10;
    config_.model = testing::image_config().model;
    config_.train = testing::image_config().train;
    config_.train.batch = 4;
    config_.train.steps = 10;
    config_.record = testing::image_config().record;
    config_.augment.crop_scale = 0.2;
    config_.augment.auto_augment = "rand-inc";
    config_.augment.magnitude_std = 0.5;
    config_.augment.color_jitter = 0.3;
    config_.augment.hue = 0.1;
    config_.augment.erase = 0.5;
    config_.augment.erase_value = "noise";
    config_.augment.mixup = 0.8;
    config_.augment.cutmix = 1;
  }

  static std::string image(Random& random) {
    const auto width = static_cast<std::uint32_t>(8 + random.below(30));
    const auto height = static_cast<std::uint32_t>(8 + random.below(30));
    const auto components = static_cast<int>(3 + random.below(2));
    std::string pixels(std::size_t{width} * height * components, '\0');
    for (char& level : pixels) level = static_cast<char>(random.below(256));
    if (random.below(3) > 0) {
      return jpeg_bytes(width, height, components, pixels);
    }
    return png_bytes({.width = width, .height = height, .rows = pixels});
  }

  std::unique_ptr<Examples> examples(std::int64_t workers = 0) const {
    run::Config config = config_;
    config.train.workers = workers;
    return make_examples(load_task_data(config.task), config);
  }

  void without_augmentation() { config_.augment = {}; }

  run::RunInfo run(const char* name, int steps, std::int64_t workers) {
    int asked = 0;
    Job job;
    job.config = config_;
    job.config.train.workers = workers;
    job.data = load_task_data(config_.task);
    job.folder = folder_ / name;
    job.resume = true;
    job.stop = [&] { return ++asked > steps; };
    return train(job);
  }

  test::TemporaryFolder folder_;
  run::Config config_;
};

void expect_equal(const Batch& a, const Batch& b) {
  EXPECT_TRUE(torch::equal(a.inputs, b.inputs));
  EXPECT_TRUE(torch::equal(a.targets, b.targets));
  EXPECT_TRUE(torch::equal(a.others, b.others));
  EXPECT_EQ(a.share, b.share);
}

TEST_F(ImageFiles, AreAFunctionOfSeedAndIndexForAnyNumberOfWorkers) {
  const auto one = examples(1);
  for (const std::int64_t workers : {2, 3, 7}) {
    const auto several = examples(workers);
    for (const std::int64_t index : {5, 0, 13}) {
      expect_equal(several->train_batch(index), one->train_batch(index));
    }
    EXPECT_TRUE(
        torch::equal(several->test_batch(0).inputs, one->test_batch(0).inputs));
  }
  const Batch first = one->train_batch(0);
  EXPECT_FALSE(torch::equal(first.inputs, one->train_batch(6).inputs));
  config_.train.seed = 2;
  EXPECT_FALSE(torch::equal(first.inputs, examples()->train_batch(0).inputs));
}

TEST_F(ImageFiles, ResumeToTheSameNumbers) {
  EXPECT_EQ(run("whole", 100, 1).state, run::RunState::kFinished);
  // Nothing is there to make a whole run equal to: so the same twice.
  config_.train.workers = 1;
  EXPECT_EQ(run("parts", 3, 1).state, run::RunState::kInterrupted);
  EXPECT_EQ(run("parts", 100, 1).state, run::RunState::kFinished);
  EXPECT_EQ(polyattn::test::timeless(folder_ / "parts"),
            polyattn::test::timeless(folder_ / "whole"));
  EXPECT_TRUE(fs::exists(folder_ / "whole/maps.json"));
}

TEST_F(ImageFiles, WithoutAugmentationAreScaledAndNormalised) {
  without_augmentation();
  for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
    if (!entry.is_regular_file()) continue;
    test::write_text(entry.path(),
                     png_bytes({.width = 30,
                                .height = 17,
                                .rows = std::string(3 * 30 * 17, '\x64')}));
  }
  const auto all = examples();
  const Batch batch = all->train_batch(0);
  EXPECT_EQ(batch.inputs.sizes(), (torch::IntArrayRef{4, 3, 8, 8}));
  const auto pixels = all->pixels();
  ASSERT_TRUE(pixels);
  for (std::int64_t c = 0; c < 3; ++c) {
    const auto i = static_cast<std::size_t>(c);
    const double value = (100 / 255.0 - pixels->mean[i]) / pixels->std[i];
    const torch::Tensor plane = batch.inputs.select(1, c);
    EXPECT_NEAR(plane.min().item<double>(), value, 1e-6);
    EXPECT_NEAR(plane.max().item<double>(), value, 1e-6);
  }
  EXPECT_EQ(all->test_count(), 5);
  EXPECT_EQ(all->test_image(2)->label, "b");
  EXPECT_EQ(all->test_image(2)->pixels.pixels,
            std::vector<std::uint8_t>(3 * 8 * 8, 100));
}

// A large JPEG is decoded at a fraction of its size, and is the same image.
TEST_F(ImageFiles, AreDecodedSmallerWhereThatIsEnough) {
  without_augmentation();
  std::string ramp, small;
  for (int y = 0; y < 320; ++y) {
    for (int x = 0; x < 480; ++x) ramp.push_back(static_cast<char>(x / 2));
  }
  folder_.write("val/b/0.JPEG", jpeg_bytes(480, 320, 1, ramp));
  for (char& level : ramp) small += std::string(3, level);
  folder_.write("val/b/1.JPEG",
                png_bytes({.width = 480, .height = 320, .rows = small}));
  const auto all = examples();
  const auto jpeg = all->test_image(0)->pixels.pixels;
  const auto png = all->test_image(1)->pixels.pixels;
  for (std::size_t i = 0; i < png.size(); ++i) {
    ASSERT_NEAR(jpeg[i], png[i], 1) << i;
  }
}

TEST_F(ImageFiles, StopAtABrokenFileAndNameTheFirst) {
  for (const char* name : {"train/a/13.JPEG", "train/b/20.JPEG"}) {
    folder_.write(name,
                  jpeg_bytes(9, 9, 1, std::string(81, 'x')).substr(0, 90));
  }
  folder_.write("train/b/11.JPEG", "<html>404</html>");
  std::set<std::string> first;
  for (const std::int64_t workers : {1, 2, 5}) {
    const auto all = examples(workers);
    std::string message;
    for (std::int64_t i = 0; i < 6; ++i) {
      message += polyattn::test::message_of<data::DataError>(
          [&] { all->train_batch(i); });
    }
    first.insert(message);
    EXPECT_NE(message.find("13.JPEG: the JPEG is damaged"), std::string::npos);
    EXPECT_NE(message.find("11.JPEG: this is neither"), std::string::npos);
  }
  EXPECT_EQ(first.size(), 1U);
  EXPECT_THROW(run("broken", 100, 2), data::DataError);
}

TEST_F(ImageFiles, LimitsTakeFilesOfAllClasses) {
  without_augmentation();
  config_.task.train_limit = 4;
  const Batch batch = examples()->train_batch(0);
  EXPECT_EQ(batch.targets.sum().item<std::int64_t>(), 2);
  config_.task.test_limit = 2;
  EXPECT_EQ(examples()->test_batch(0).items, 2);
}

TEST_F(ImageFiles, HoldOutValidationData) {
  without_augmentation();
  config_.task.validation = 0.25;
  const auto all = examples();
  EXPECT_EQ(all->test_count(), 6);
  EXPECT_EQ(all->batches_per_epoch(), 4);
  EXPECT_EQ(all->test_batch(0).items, 6);
}

TEST_F(ImageFiles, RepeatImagesWithinABatch) {
  without_augmentation();
  config_.augment.repeats = 2;
  const auto all = examples();
  EXPECT_EQ(all->batches_per_epoch(), 6);
  const Batch batch = all->train_batch(0);
  EXPECT_TRUE(torch::equal(batch.inputs[0], batch.inputs[1]));
  EXPECT_FALSE(torch::equal(batch.inputs[1], batch.inputs[2]));
  config_.augment.crop_scale = 0.2;
  const Batch cropped = examples()->train_batch(0);
  EXPECT_FALSE(torch::equal(cropped.inputs[0], cropped.inputs[1]));
  EXPECT_TRUE(torch::equal(cropped.targets, batch.targets));
}

}  // namespace polyattn::train::image_file_examples_test
