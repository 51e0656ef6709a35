#include "train/image_pipeline.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "augment/crop.h"

namespace polyattn::train {
namespace {

using augment::Image;

augment::PolicyKind policy_kind(const std::string& name) {
  if (name == "ra") return augment::PolicyKind::kRandAugment;
  if (name == "rand-inc") return augment::PolicyKind::kRandIncreasing;
  if (name == "ta_wide") return augment::PolicyKind::kTrivialWide;
  return augment::PolicyKind::kNone;
}

// The level that is normalised to what is nearest to zero: timm fills with it
// what operations uncover, torchvision with black.
std::uint8_t mean_level(const Levels& levels) {
  const auto nearest = std::min_element(
      levels.begin(), levels.end(),
      [](float a, float b) { return std::abs(a) < std::abs(b); });
  return static_cast<std::uint8_t>(nearest - levels.begin());
}

augment::PolicyOptions policy_of(const run::AugmentConfig& config,
                                 augment::Interpolation interpolation,
                                 const std::vector<Levels>& levels) {
  augment::PolicyOptions options{
      .kind = policy_kind(config.auto_augment),
      .operations = static_cast<int>(config.operations),
      .magnitude = config.magnitude,
      .deviation = config.magnitude_std,
      .filling = {.interpolation = interpolation}};
  if (options.kind == augment::PolicyKind::kRandIncreasing) {
    for (std::size_t c = 0; c < levels.size(); ++c) {
      options.filling.colour.at(c) = mean_level(levels[c]);
    }
  }
  return options;
}

void flip(Image& image) {
  for (std::int64_t y = 0; y < image.height; ++y) {
    std::uint8_t* row = image.row(y);
    for (std::int64_t x = 0; x < image.width / 2; ++x) {
      std::swap_ranges(row + x * image.channels, row + (x + 1) * image.channels,
                       row + (image.width - 1 - x) * image.channels);
    }
  }
}

}  // namespace

Levels normalised_levels(double mean, double deviation) {
  Levels levels(256);
  for (std::size_t level = 0; level < levels.size(); ++level) {
    levels[level] =
        static_cast<float>((static_cast<double>(level) - mean) / deviation);
  }
  return levels;
}

bool augments_pixels(const run::AugmentConfig& config) {
  return config.crop_scale > 0 || config.auto_augment != "none" ||
         config.color_jitter > 0 || config.hue > 0 || config.erase > 0;
}

ImagePipeline::ImagePipeline(const run::Config& config, std::int64_t size,
                             std::vector<Levels> levels)
    : config_(config.augment),
      size_(size),
      resize_(config.task.resize > 0 ? config.task.resize : size),
      interpolation_(config.task.interpolation == "bicubic"
                         ? augment::Interpolation::kBicubic
                         : augment::Interpolation::kBilinear),
      policy_(policy_of(config.augment, interpolation_, levels)),
      levels_(std::move(levels)) {}

augment::Resize ImagePipeline::training_crop(std::int64_t width,
                                             std::int64_t height,
                                             Random& random) const {
  if (config_.crop_scale == 0) return test_crop(width, height);
  const augment::Window part =
      augment::draw_crop(width, height,
                         {.least = config_.crop_scale,
                          .lowest = 1 / config_.crop_ratio,
                          .highest = config_.crop_ratio},
                         random);
  return augment::resize_to(
      {static_cast<double>(part.left), static_cast<double>(part.top),
       static_cast<double>(part.width), static_cast<double>(part.height)},
      size_, interpolation_);
}

augment::Resize ImagePipeline::test_crop(std::int64_t width,
                                         std::int64_t height) const {
  return augment::centre_crop(
      width, height,
      {.shorter = resize_, .size = size_, .interpolation = interpolation_});
}

// Pixels from outside are black, as if the image had been padded.
Image ImagePipeline::shifted(const Image& image, Random& random) const {
  const std::int64_t reach = config_.crop;
  const std::int64_t dx = random.below(2 * reach + 1) - reach;
  const std::int64_t dy = random.below(2 * reach + 1) - reach;
  Image result =
      augment::blank_image(image.width, image.height, image.channels);
  const std::int64_t first = std::max<std::int64_t>(0, -dx);
  const std::int64_t last = std::min(image.width, image.width - dx);
  for (std::int64_t y = 0; y < image.height; ++y) {
    if (y + dy < 0 || y + dy >= image.height || first >= last) continue;
    const std::uint8_t* from =
        image.row(y + dy) + (first + dx) * image.channels;
    std::copy_n(from, (last - first) * image.channels,
                result.row(y) + first * image.channels);
  }
  return result;
}

void ImagePipeline::finish_training(Image image, Random& random,
                                    float* out) const {
  if (config_.crop > 0) image = shifted(image, random);
  if (config_.flip && random.uniform() < 0.5) flip(image);
  augment::augment(policy_, image, random);
  if (config_.color_jitter > 0 || config_.hue > 0) {
    augment::jitter({.strength = config_.color_jitter, .hue = config_.hue},
                    image, random);
  }
  normalise(image, out);
  if (config_.erase > 0 && random.uniform() < config_.erase) {
    erase(random, out);
  }
}

void ImagePipeline::normalise(const Image& image, float* out) const {
  for (std::int64_t c = 0; c < image.channels; ++c) {
    const float* levels = levels_[static_cast<std::size_t>(c)].data();
    const std::uint8_t* pixel = image.pixels.data() + c;
    for (std::int64_t i = 0; i < image.width * image.height; ++i) {
      *out++ = levels[*pixel];
      pixel += image.channels;
    }
  }
}

void ImagePipeline::erase(Random& random, float* out) const {
  const auto part = augment::draw_erased(size_, size_, random);
  if (!part) return;
  const bool noise = config_.erase_value == "noise";
  for (std::size_t c = 0; c < levels_.size(); ++c) {
    for (std::int64_t y = 0; y < part->height; ++y) {
      float* row = out + (part->top + y) * size_ + part->left;
      for (std::int64_t x = 0; x < part->width; ++x) {
        row[x] = noise ? static_cast<float>(random.normal()) : 0.0F;
      }
    }
    out += size_ * size_;
  }
}

}  // namespace polyattn::train
