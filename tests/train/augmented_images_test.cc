// What happens to images on the way into a batch, beyond flips and shifts.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "train/examples.h"
#include "train/image_pipeline.h"
#include "train/mixup.h"
#include "train/order.h"
#include "train/small_tasks.h"

namespace polyattn::train::augmented_images_test {

using testing::image_config;
using testing::image_data;

Batch first_batch(const run::Config& config) {
  return make_examples(image_data(), config)->train_batch(3);
}

using Change = void (*)(run::AugmentConfig&);
constexpr Change kChanges[] = {
    [](run::AugmentConfig& a) { a.crop_scale = 0.3; },
    [](run::AugmentConfig& a) { a.auto_augment = "ra"; },
    [](run::AugmentConfig& a) { a.auto_augment = "ta_wide"; },
    [](run::AugmentConfig& a) {
      a.auto_augment = "rand-inc";
      a.magnitude_std = 0.5;
    },
    [](run::AugmentConfig& a) { a.color_jitter = 0.4; },
    [](run::AugmentConfig& a) { a.erase = 1; },
    [](run::AugmentConfig& a) { a.cutmix = 1; },
    [](run::AugmentConfig& a) { a.repeats = 3; },
};

TEST(AugmentedImages, AreAFunctionOfSeedAndIndexForAnyNumberOfWorkers) {
  const torch::Tensor plain = first_batch(image_config()).inputs;
  for (const Change change : kChanges) {
    run::Config config = image_config();
    change(config.augment);
    config.train.workers = 1;
    const torch::Tensor one = first_batch(config).inputs;
    EXPECT_FALSE(torch::equal(one, plain));
    EXPECT_TRUE(one.isfinite().all().item<bool>());
    config.train.workers = 3;
    EXPECT_TRUE(torch::equal(first_batch(config).inputs, one));
  }
}

// A crop of all there is changes nothing, in grey and in colour.
TEST(AugmentedImages, OfTheWholeImageAreThePlainOnes) {
  TaskData colours = *image_data();
  for (data::ImageSet* set : {&std::get<data::ImageSplits>(colours).train,
                              &std::get<data::ImageSplits>(colours).test}) {
    data::ImageSet rgb{.channels = 3, .height = 8, .width = 8};
    rgb.labels = set->labels;
    for (std::size_t i = 0; i < 3 * set->pixels.size(); ++i) {
      rgb.pixels.push_back(static_cast<std::uint8_t>(i * 7 % 251));
    }
    *set = std::move(rgb);
  }
  for (const auto& data :
       {image_data(), std::make_shared<const TaskData>(std::move(colours))}) {
    run::Config config = image_config();
    const Batch plain = make_examples(data, config)->train_batch(2);
    config.augment.crop_scale = 1;
    config.augment.crop_ratio = 1;
    const Batch cropped = make_examples(data, config)->train_batch(2);
    EXPECT_TRUE(torch::equal(cropped.inputs, plain.inputs));
    EXPECT_TRUE(torch::equal(cropped.targets, plain.targets));
  }
}

// The random numbers of the batches of old runs: for each image two of the
// shift and one of the flip, then the share of mixup.
TEST(AugmentedImages, LeaveFlipsShiftsAndMixupAsTheyWere) {
  run::Config config = image_config();
  config.augment.flip = true;
  config.augment.crop = 2;
  config.augment.mixup = 0.4;
  Random random(1, Stream::kAugment, 3);
  for (std::int64_t i = 0; i < config.train.batch; ++i) {
    random.below(5);
    random.below(5);
    random.uniform();
  }
  EXPECT_EQ(first_batch(config).share, random.symmetric_beta(0.4));
}

TEST(AugmentedImages, TakeOneOfMixupAndCutmixForABatch) {
  run::Config config = image_config();
  config.augment.mixup = 0.8;
  config.augment.cutmix = 1;
  const auto examples = make_examples(image_data(), config);
  config.augment = {};
  const auto plain = make_examples(image_data(), config);
  int pasted = 0;
  for (std::int64_t i = 0; i < 200; ++i) {
    const Batch batch = examples->train_batch(i);
    const torch::Tensor image = plain->train_batch(i).inputs[0];
    ASSERT_TRUE(batch.others.defined());
    const double kept =
        batch.inputs[0].eq(image).to(torch::kFloat).mean().item<double>();
    // Of a mixture hardly a pixel stays; of what is pasted the share does.
    if (kept > 0.25 && std::abs(kept - batch.share) < 0.05) ++pasted;
  }
  EXPECT_GT(pasted, 60);
  EXPECT_LT(pasted, 120);
}

TEST(Cutmix, PastesAPartOfTheReverse) {
  Batch batch;
  batch.inputs = torch::zeros({3, 2, 10, 10});
  for (int i = 0; i < 3; ++i) batch.inputs[i] += i + 1;
  batch.targets = torch::tensor({5, 6, 7}, torch::kLong);
  batch.share = 0.6;
  Random random(4, Stream::kAugment, 0);
  paste_from_reverse(batch, random);
  EXPECT_TRUE(torch::equal(batch.others, batch.targets.flip(0)));
  const auto share_of = [&](int image, double value) {
    return batch.inputs[image]
        .eq(value)
        .to(torch::kDouble)
        .mean()
        .item<double>();
  };
  EXPECT_LT(batch.share, 1);
  EXPECT_NEAR(share_of(0, 1), batch.share, 1e-12);
  EXPECT_NEAR(share_of(0, 3), 1 - batch.share, 1e-12);
  EXPECT_NEAR(share_of(2, 3), batch.share, 1e-12);
  EXPECT_EQ(share_of(1, 2), 1);
  EXPECT_TRUE(torch::equal(batch.inputs[0].eq(3), batch.inputs[2].eq(1)));
}

ImagePipeline pipeline_of(const run::Config& config) {
  return {config, 32, {normalised_levels(100, 50)}};
}

torch::Tensor finished(const run::Config& config, std::uint64_t index) {
  const augment::Image image{32, 32, 1, std::vector<std::uint8_t>(1024, 200)};
  torch::Tensor out = torch::empty({32, 32});
  Random random(1, Stream::kImage, index);
  pipeline_of(config).finish_training(image, random, out.data_ptr<float>());
  return out;
}

TEST(Erasing, PutsTheMeanOrNoiseIntoItsShareOfImages) {
  run::Config config = image_config();
  config.augment.erase = 0.25;
  int erased = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const torch::Tensor out = finished(config, i);
    const double zeros = out.eq(0).to(torch::kDouble).mean().item<double>();
    const double rest = out.eq(2).to(torch::kDouble).mean().item<double>();
    ASSERT_EQ(zeros + rest, 1);
    ASSERT_LT(zeros, 0.36);
    erased += zeros > 0 ? 1 : 0;
  }
  EXPECT_NEAR(erased, 500, 4 * std::sqrt(2000 * 0.25 * 0.75));
  config.augment.erase = 1;
  config.augment.erase_value = "noise";
  const torch::Tensor noise = finished(config, 0).ne(2);
  EXPECT_GT(noise.sum().item<int>(), 10);
  EXPECT_EQ(finished(config, 0).eq(0).sum().item<int>(), 0);
}

// timm fills what an operation uncovers with the mean colour, torchvision with
// black: on an image of the mean, what moves it shows nothing.
TEST(Policies, FillWithTheMeanOrWithBlack) {
  run::Config config = image_config();
  const augment::Image image{32, 32, 1, std::vector<std::uint8_t>(1024, 100)};
  for (const char* policy : {"rand-inc", "ta_wide"}) {
    config.augment.auto_augment = policy;
    const ImagePipeline pipeline = pipeline_of(config);
    int uncovered = 0;
    for (std::uint64_t i = 0; i < 300; ++i) {
      torch::Tensor out = torch::empty({32, 32});
      Random random(1, Stream::kImage, i);
      pipeline.finish_training(image, random, out.data_ptr<float>());
      // Black beside levels that are as they were.
      const bool black = out.eq(-2).any().item<bool>();
      uncovered += black && out.eq(0).any().item<bool>() ? 1 : 0;
    }
    if (policy == std::string("rand-inc")) {
      EXPECT_EQ(uncovered, 0);
    } else {
      EXPECT_GT(uncovered, 50);
    }
  }
}

TEST(Repeats, LeaveBatchesAsManyAndExamplesFewer) {
  BatchOrder plain({.count = 20, .batch = 6, .seed = 1});
  BatchOrder order({.count = 20, .batch = 6, .seed = 1, .repeats = 3});
  EXPECT_EQ(order.batches_per_epoch(), plain.batches_per_epoch());
  std::vector<std::int64_t> once;
  for (std::int64_t i = 0; i < 3; ++i) {
    const auto batch = plain.batch(i);
    once.insert(once.end(), batch.begin(), batch.end());
  }
  std::size_t place = 0;
  for (std::int64_t i = 0; i < 3; ++i) {
    for (const std::int64_t example : order.batch(i)) {
      EXPECT_EQ(example, once[place++ / 3]);
    }
  }
}

}  // namespace polyattn::train::augmented_images_test
