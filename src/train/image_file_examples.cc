#include "train/image_file_examples.h"

#include <algorithm>
#include <array>
#include <utility>

#include "data/decode.h"
#include "data/workers.h"
#include "train/limit.h"
#include "train/mixup.h"

namespace polyattn::train {
namespace {

constexpr std::int64_t kTestFiles = 64;  // in a batch
constexpr std::int64_t kRgb = 3;
constexpr std::array<double, kRgb> kMean = {0.485, 0.456, 0.406};
constexpr std::array<double, kRgb> kDeviation = {0.229, 0.224, 0.225};

std::vector<Levels> imagenet_levels() {
  std::vector<Levels> levels;
  for (std::size_t c = 0; c < kMean.size(); ++c) {
    levels.push_back(normalised_levels(255 * kMean[c], 255 * kDeviation[c]));
  }
  return levels;
}

// The file of an example when a limit leaves some out. Files are sorted by
// class, so that the first ones would be of one.
std::int64_t spread_file(std::int64_t index, std::int64_t used,
                         std::size_t all) {
  return index * static_cast<std::int64_t>(all) / used;
}

// How much smaller a JPEG may be decoded so that each side of the part still
// has twice the pixels that it gets.
std::size_t shrink_for(const augment::Resize& how) {
  const double spare =
      std::min(how.from.width / static_cast<double>(how.scaled_width),
               how.from.height / static_cast<double>(how.scaled_height));
  std::size_t shrink = 1;
  while (shrink < 8 && spare >= 4.0 * static_cast<double>(shrink)) shrink *= 2;
  return shrink;
}

// The part of a file that `crop` of its width and height says, scaled.
template <typename Crop>
augment::Image read_part(const std::string& path, const Crop& crop) {
  const std::vector<std::byte> bytes = data::read_image_file(path);
  const data::ImageSize size = data::image_size(bytes, path);
  augment::Resize how = crop(static_cast<std::int64_t>(size.width),
                             static_cast<std::int64_t>(size.height));
  data::RgbImage image = data::decode_image(bytes, shrink_for(how), path);
  const double x =
      static_cast<double>(image.width) / static_cast<double>(size.width);
  const double y =
      static_cast<double>(image.height) / static_cast<double>(size.height);
  how.from = {how.from.left * x, how.from.top * y, how.from.width * x,
              how.from.height * y};
  return augment::resize(
      {static_cast<std::int64_t>(image.width),
       static_cast<std::int64_t>(image.height), kRgb, std::move(image.pixels)},
      how);
}

}  // namespace

ImageFileExamples::ImageFileExamples(std::shared_ptr<const void> owner,
                                     const data::ImageFileSplits& splits,
                                     const run::Config& config)
    : owner_(std::move(owner)),
      splits_(splits),
      evaluated_(evaluated_part(splits, config.task)),
      augment_(config.augment),
      seed_(static_cast<std::uint64_t>(config.train.seed)),
      size_(config.task.image_size),
      batch_(config.train.batch),
      workers_(loader_threads(config.train)),
      train_count_(limited(splits.train.count(), config.task.train_limit)),
      test_count_(limited(evaluated_.count(), config.task.test_limit)),
      pipeline_(config, size_, imagenet_levels()),
      order_({.count = train_count_,
              .batch = config.train.batch,
              .seed = seed_,
              .repeats = config.augment.repeats}) {}

std::int64_t ImageFileExamples::batches_per_epoch() const {
  return order_.batches_per_epoch();
}

std::optional<run::PixelStatistics> ImageFileExamples::pixels() const {
  return run::PixelStatistics{{kMean.begin(), kMean.end()},
                              {kDeviation.begin(), kDeviation.end()}};
}

Batch ImageFileExamples::empty_batch(std::int64_t count) const {
  Batch batch;
  batch.items = count;
  batch.inputs = torch::empty({count, kRgb, size_, size_});
  batch.targets = torch::empty({count}, torch::kLong);
  return batch;
}

Batch ImageFileExamples::train_batch(std::int64_t index) {
  const auto chosen = order_.batch(index);
  Batch batch = empty_batch(batch_);
  float* pixels = batch.inputs.data_ptr<float>();
  auto* classes = batch.targets.data_ptr<std::int64_t>();
  data::run_parallel(
      chosen.size(),
      [&](std::size_t i) {
        const auto place = static_cast<std::int64_t>(i);
        Random random(seed_, Stream::kImage,
                      static_cast<std::uint64_t>(index * batch_ + place));
        const auto file = static_cast<std::size_t>(
            spread_file(chosen[i], train_count_, splits_.train.count()));
        augment::Image image = read_part(
            splits_.train.path(file), [&](std::int64_t w, std::int64_t h) {
              return pipeline_.training_crop(w, h, random);
            });
        pipeline_.finish_training(std::move(image), random,
                                  pixels + place * kRgb * size_ * size_);
        classes[i] = splits_.train.labels[file];
      },
      workers_);
  Random random(seed_, Stream::kAugment, static_cast<std::uint64_t>(index));
  mix(augment_, random, batch);
  return batch;
}

std::int64_t ImageFileExamples::test_batches() const {
  return (test_count_ + kTestFiles - 1) / kTestFiles;
}

std::int64_t ImageFileExamples::test_file(std::int64_t index) const {
  return spread_file(index, test_count_, evaluated_.count());
}

std::optional<TestImage> ImageFileExamples::test_image(
    std::int64_t index) const {
  const auto file = static_cast<std::size_t>(test_file(index));
  const auto label = static_cast<std::size_t>(evaluated_.labels[file]);
  return TestImage{read_part(evaluated_.path(file),
                             [&](std::int64_t w, std::int64_t h) {
                               return pipeline_.test_crop(w, h);
                             }),
                   splits_.class_names.at(label)};
}

Batch ImageFileExamples::test_batch(std::int64_t index) const {
  const std::int64_t first = index * kTestFiles;
  Batch batch = empty_batch(std::min(kTestFiles, test_count_ - first));
  float* pixels = batch.inputs.data_ptr<float>();
  auto* classes = batch.targets.data_ptr<std::int64_t>();
  data::run_parallel(
      static_cast<std::size_t>(batch.items),
      [&](std::size_t i) {
        const auto place = static_cast<std::int64_t>(i);
        const auto file = static_cast<std::size_t>(test_file(first + place));
        const augment::Image image = read_part(
            evaluated_.path(file), [&](std::int64_t w, std::int64_t h) {
              return pipeline_.test_crop(w, h);
            });
        pipeline_.normalise(image, pixels + place * kRgb * size_ * size_);
        classes[i] = evaluated_.labels[file];
      },
      workers_);
  return batch;
}

}  // namespace polyattn::train
