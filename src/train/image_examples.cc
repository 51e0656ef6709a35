#include "train/image_examples.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "data/workers.h"
#include "train/limit.h"
#include "train/mixup.h"
#include "train/random.h"

namespace polyattn::train {
namespace {

constexpr std::int64_t kTestImages = 256;

struct ChannelStatistics {
  double mean = 0, deviation = 0;  // of levels from 0 to 255
};

// Over the first `count` images.
ChannelStatistics statistics_of(const data::ImageSet& set, std::int64_t channel,
                                std::int64_t count) {
  std::array<std::int64_t, 256> histogram{};
  const std::int64_t size = set.height * set.width;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint8_t* plane =
        set.pixels.data() + (i * set.channels + channel) * size;
    for (std::int64_t j = 0; j < size; ++j) ++histogram[plane[j]];
  }
  const auto total = static_cast<double>(count * size);
  double mean = 0;
  double square = 0;
  for (std::size_t level = 0; level < histogram.size(); ++level) {
    const double share = static_cast<double>(histogram[level]) / total;
    const auto value = static_cast<double>(level);
    mean += share * value;
    square += share * value * value;
  }
  // A channel without contrast is left at zero, not divided by it.
  return {mean, std::sqrt(std::max(square - mean * mean, 1e-4))};
}

// Pixels one after the other, not planes.
augment::Image image_of(const data::ImageSet& set, std::int64_t index) {
  augment::Image image =
      augment::blank_image(set.width, set.height, set.channels);
  const std::int64_t size = set.width * set.height;
  const std::uint8_t* level = set.pixels.data() + index * set.channels * size;
  for (std::int64_t c = 0; c < set.channels; ++c) {
    std::uint8_t* out = image.pixels.data() + c;
    for (std::int64_t i = 0; i < size; ++i) out[i * set.channels] = *level++;
  }
  return image;
}

torch::Tensor make_images(const data::ImageSet& set, std::int64_t count) {
  return torch::empty({count, set.channels, set.height, set.width});
}

}  // namespace

ImageExamples::ImageExamples(std::shared_ptr<const void> owner,
                             const data::ImageSplits& splits,
                             const run::Config& config)
    : owner_(std::move(owner)),
      splits_(splits),
      evaluated_(evaluated_part(splits, config.task)),
      augment_(config.augment),
      seed_(static_cast<std::uint64_t>(config.train.seed)),
      batch_(config.train.batch),
      test_count_(limited(evaluated_.count(), config.task.test_limit)),
      workers_(loader_threads(config.train)),
      order_({.count = limited(splits.train.count(), config.task.train_limit),
              .batch = config.train.batch,
              .seed = seed_,
              .repeats = config.augment.repeats}) {
  const auto count = limited(splits.train.count(), config.task.train_limit);
  for (std::int64_t c = 0; c < splits.train.channels; ++c) {
    const ChannelStatistics channel = statistics_of(splits.train, c, count);
    levels_.push_back(normalised_levels(channel.mean, channel.deviation));
    pixels_.mean.push_back(channel.mean / 255);
    pixels_.std.push_back(channel.deviation / 255);
  }
  if (augments_pixels(config.augment)) {
    pipeline_.emplace(config, splits.train.height, levels_);
  }
}

std::int64_t ImageExamples::batches_per_epoch() const {
  return order_.batches_per_epoch();
}

ImageExamples::Placement ImageExamples::place(Random& random) const {
  Placement placement;
  if (augment_.crop > 0) {
    placement.dx = random.below(2 * augment_.crop + 1) - augment_.crop;
    placement.dy = random.below(2 * augment_.crop + 1) - augment_.crop;
  }
  if (augment_.flip) placement.flipped = random.uniform() < 0.5;
  return placement;
}

// Pixels from outside are black, as if the image had been padded.
void ImageExamples::copy(const data::ImageSet& set, std::int64_t image,
                         const Placement& placement, float* out) const {
  const std::int64_t height = set.height;
  const std::int64_t width = set.width;
  for (std::int64_t c = 0; c < set.channels; ++c) {
    const std::uint8_t* plane =
        set.pixels.data() + (image * set.channels + c) * height * width;
    const Levels& levels = levels_[static_cast<std::size_t>(c)];
    for (std::int64_t y = 0; y < height; ++y) {
      const std::int64_t from_y = y + placement.dy;
      const bool inside = from_y >= 0 && from_y < height;
      for (std::int64_t x = 0; x < width; ++x) {
        const std::int64_t from_x =
            (placement.flipped ? width - 1 - x : x) + placement.dx;
        const bool seen = inside && from_x >= 0 && from_x < width;
        *out++ = levels[seen ? plane[from_y * width + from_x] : 0];
      }
    }
  }
}

void ImageExamples::copy_placed(std::span<const std::int64_t> chosen,
                                Random& random, float* pixels) const {
  const data::ImageSet& set = splits_.train;
  for (const std::int64_t image : chosen) {
    copy(set, image, place(random), pixels);
    pixels += set.channels * set.height * set.width;
  }
}

void ImageExamples::copy_augmented(std::span<const std::int64_t> chosen,
                                   std::int64_t index, float* pixels) const {
  const data::ImageSet& set = splits_.train;
  const auto work = [&](std::size_t i) {
    const auto place = static_cast<std::int64_t>(i);
    Random random(seed_, Stream::kImage,
                  static_cast<std::uint64_t>(index * batch_ + place));
    augment::Image image = image_of(set, chosen[i]);
    if (augment_.crop_scale > 0) {
      image = augment::resize(
          image, pipeline_->training_crop(set.width, set.height, random));
    }
    pipeline_->finish_training(
        std::move(image), random,
        pixels + place * set.channels * set.height * set.width);
  };
  data::run_parallel(chosen.size(), work, workers_);
}

Batch ImageExamples::train_batch(std::int64_t index) {
  const data::ImageSet& set = splits_.train;
  Random random(seed_, Stream::kAugment, static_cast<std::uint64_t>(index));
  const auto chosen = order_.batch(index);
  Batch batch;
  batch.items = batch_;
  batch.inputs = make_images(set, batch_);
  batch.targets = torch::empty({batch_}, torch::kLong);
  float* pixels = batch.inputs.data_ptr<float>();
  if (pipeline_) {
    copy_augmented(chosen, index, pixels);
  } else {
    copy_placed(chosen, random, pixels);
  }
  auto* classes = batch.targets.data_ptr<std::int64_t>();
  for (const std::int64_t image : chosen) {
    *classes++ = set.labels[static_cast<std::size_t>(image)];
  }
  mix(augment_, random, batch);
  return batch;
}

std::optional<TestImage> ImageExamples::test_image(std::int64_t index) const {
  const auto label = static_cast<std::size_t>(
      evaluated_.labels[static_cast<std::size_t>(index)]);
  return TestImage{image_of(evaluated_, index), splits_.class_names.at(label)};
}

std::int64_t ImageExamples::test_batches() const {
  return (test_count_ + kTestImages - 1) / kTestImages;
}

Batch ImageExamples::test_batch(std::int64_t index) const {
  const data::ImageSet& set = evaluated_;
  const std::int64_t first = index * kTestImages;
  const std::int64_t count = std::min(kTestImages, test_count_ - first);
  Batch batch;
  batch.items = count;
  batch.inputs = make_images(set, count);
  batch.targets = torch::empty({count}, torch::kLong);
  float* pixels = batch.inputs.data_ptr<float>();
  auto* classes = batch.targets.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < count; ++i) {
    copy(set, first + i, {}, pixels);
    pixels += set.channels * set.height * set.width;
    classes[i] = set.labels[static_cast<std::size_t>(first + i)];
  }
  return batch;
}

}  // namespace polyattn::train
