// Images as batches: normalised by the mean and deviation of each channel over
// the training set, flipped, moved and mixed if asked for.
#pragma once

#include <memory>
#include <vector>

#include "train/examples.h"
#include "train/order.h"

namespace polyattn::train {

class ImageExamples : public Examples {
 public:
  // The sets must outlive this: `owner` keeps them.
  ImageExamples(std::shared_ptr<const void> owner,
                const data::ImageSplits& splits, const run::Config& config);

  std::int64_t batches_per_epoch() const override;
  Batch train_batch(std::int64_t index) override;
  std::int64_t test_batches() const override;
  Batch test_batch(std::int64_t index) const override;
  std::int64_t test_count() const override { return test_count_; }
  std::optional<run::PixelStatistics> pixels() const override {
    return pixels_;
  }
  const char* unit() const override { return "images"; }

 private:
  struct Placement {
    std::int64_t dx = 0, dy = 0;
    bool flipped = false;
  };

  // The value of each of the 256 levels.
  using Levels = std::vector<float>;

  Placement place(class Random& random) const;
  void copy(const data::ImageSet& set, std::int64_t image,
            const Placement& placement, float* out) const;

  std::shared_ptr<const void> owner_;
  const data::ImageSplits& splits_;
  const data::ImageSet& evaluated_;
  run::AugmentConfig augment_;
  std::uint64_t seed_;
  std::int64_t batch_;
  std::int64_t test_count_;
  run::PixelStatistics pixels_;
  std::vector<Levels> levels_;  // by channel
  BatchOrder order_;
};

}  // namespace polyattn::train
