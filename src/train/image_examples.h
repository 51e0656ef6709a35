// Images in memory as batches: normalised by the mean and deviation of each
// channel over the training set, augmented if asked for.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "train/examples.h"
#include "train/image_pipeline.h"
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
  std::optional<TestImage> test_image(std::int64_t index) const override;
  const char* unit() const override { return "images"; }

 private:
  struct Placement {
    std::int64_t dx = 0, dy = 0;
    bool flipped = false;
  };

  Placement place(Random& random) const;
  // Flips and shifts alone, of random numbers of the batch: what there was
  // before there was a pipeline, to the same bits.
  void copy_placed(std::span<const std::int64_t> chosen, Random& random,
                   float* pixels) const;
  // Any augmentation, of random numbers of each image.
  void copy_augmented(std::span<const std::int64_t> chosen, std::int64_t index,
                      float* pixels) const;
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
  std::size_t workers_;
  std::optional<ImagePipeline> pipeline_;
  BatchOrder order_;
};

}  // namespace polyattn::train
