#include "train/mixup.h"

#include <algorithm>

#include "augment/crop.h"

namespace polyattn::train {
namespace {

torch::Tensor reversed_targets(const Batch& batch) {
  const std::int64_t count = batch.targets.numel();
  torch::Tensor others = torch::empty({count}, torch::kLong);
  const auto* classes = batch.targets.data_ptr<std::int64_t>();
  std::reverse_copy(classes, classes + count, others.data_ptr<std::int64_t>());
  return others;
}

}  // namespace

void mix_with_reverse(Batch& batch) {
  const std::int64_t count = batch.inputs.size(0);
  const std::int64_t size = batch.inputs.numel() / count;
  const auto a = static_cast<float>(batch.share);
  const auto b = static_cast<float>(1 - batch.share);
  float* images = batch.inputs.data_ptr<float>();
  batch.others = reversed_targets(batch);
  for (std::int64_t i = 0; i < count / 2; ++i) {
    float* x = images + i * size;
    float* y = images + (count - 1 - i) * size;
    for (std::int64_t j = 0; j < size; ++j) {
      const float left = x[j];
      const float right = y[j];
      x[j] = a * left + b * right;
      y[j] = a * right + b * left;
    }
  }
}

void paste_from_reverse(Batch& batch, Random& random) {
  const std::int64_t count = batch.inputs.size(0);
  const std::int64_t channels = batch.inputs.size(1);
  const std::int64_t height = batch.inputs.size(2);
  const std::int64_t width = batch.inputs.size(3);
  const augment::Window part =
      augment::draw_cutmix(width, height, batch.share, random);
  batch.others = reversed_targets(batch);
  batch.share = 1 - static_cast<double>(part.width * part.height) /
                        static_cast<double>(width * height);
  float* images = batch.inputs.data_ptr<float>();
  const auto rows = [&](std::int64_t image, std::int64_t channel) {
    return images + (image * channels + channel) * height * width +
           part.top * width + part.left;
  };
  for (std::int64_t i = 0; i < count / 2; ++i) {
    for (std::int64_t c = 0; c < channels; ++c) {
      float* x = rows(i, c);
      float* y = rows(count - 1 - i, c);
      for (std::int64_t row = 0; row < part.height; ++row) {
        std::swap_ranges(x, x + part.width, y);
        x += width;
        y += width;
      }
    }
  }
}

void mix(const run::AugmentConfig& config, Random& random, Batch& batch) {
  const bool both = config.mixup > 0 && config.cutmix > 0;
  const bool pastes = both ? random.uniform() < 0.5 : config.cutmix > 0;
  if (pastes) {
    batch.share = random.symmetric_beta(config.cutmix);
    paste_from_reverse(batch, random);
  } else if (config.mixup > 0) {
    batch.share = random.symmetric_beta(config.mixup);
    mix_with_reverse(batch);
  }
}

}  // namespace polyattn::train
