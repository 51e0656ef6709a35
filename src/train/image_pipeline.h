// From the pixels of an image to the numbers that a model sees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "augment/policy.h"
#include "augment/resize.h"
#include "train/random.h"
#include "train/run/config.h"

namespace polyattn::train {

// The normalised value of each of the 256 levels of a channel.
using Levels = std::vector<float>;

// (level - mean) / deviation, both of levels from 0 to 255.
Levels normalised_levels(double mean, double deviation);

// Whether more happens to training images than flips, shifts over a border and
// what is done to whole batches.
bool augments_pixels(const run::AugmentConfig& config);

// That make a batch; 0: as many as there are cores.
inline std::size_t loader_threads(const run::TrainConfig& config) {
  return static_cast<std::size_t>(config.workers > 0 ? config.workers
                                                     : config.threads);
}

// What happens to an image, in this order: random resized crop, shift, flip,
// policy, colour jitter, normalisation, erasing. All that is random is a
// function of the Random that is handed in. Any number of threads may use it.
class ImagePipeline {
 public:
  // For images of size x size pixels, with the levels of each channel.
  ImagePipeline(const run::Config& config, std::int64_t size,
                std::vector<Levels> levels);

  // What is cut out of an image of width x height, and how it is scaled.
  augment::Resize training_crop(std::int64_t width, std::int64_t height,
                                Random& random) const;
  augment::Resize test_crop(std::int64_t width, std::int64_t height) const;

  // An image that was scaled: [channels, size, size] at `out`.
  void finish_training(augment::Image image, Random& random, float* out) const;
  void normalise(const augment::Image& image, float* out) const;

 private:
  augment::Image shifted(const augment::Image& image, Random& random) const;
  void erase(Random& random, float* out) const;

  run::AugmentConfig config_;
  std::int64_t size_;
  std::int64_t resize_;
  augment::Interpolation interpolation_;
  augment::PolicyOptions policy_;
  std::vector<Levels> levels_;
};

}  // namespace polyattn::train
