// Images that are decoded when they are needed, as batches: ImageNet is larger
// than memory.
#pragma once

#include <memory>

#include "train/examples.h"
#include "train/image_pipeline.h"
#include "train/order.h"

namespace polyattn::train {

// Normalised by ImageNet's mean and deviation, which every public model uses.
// Several threads (train.workers) decode and augment the images of one batch; a
// file that cannot be decoded throws data::DataError, which names it, the first
// one of a batch.
class ImageFileExamples : public Examples {
 public:
  // The sets must outlive this: `owner` keeps them.
  ImageFileExamples(std::shared_ptr<const void> owner,
                    const data::ImageFileSplits& splits,
                    const run::Config& config);

  std::int64_t batches_per_epoch() const override;
  Batch train_batch(std::int64_t index) override;
  std::int64_t test_batches() const override;
  Batch test_batch(std::int64_t index) const override;
  std::int64_t test_count() const override { return test_count_; }
  std::optional<run::PixelStatistics> pixels() const override;
  std::optional<TestImage> test_image(std::int64_t index) const override;
  const char* unit() const override { return "images"; }

 private:
  Batch empty_batch(std::int64_t count) const;
  std::int64_t test_file(std::int64_t index) const;

  std::shared_ptr<const void> owner_;
  const data::ImageFileSplits& splits_;
  const data::ImageFileSet& evaluated_;
  run::AugmentConfig augment_;
  std::uint64_t seed_;
  std::int64_t size_;
  std::int64_t batch_;
  std::size_t workers_;
  std::int64_t train_count_;
  std::int64_t test_count_;
  ImagePipeline pipeline_;
  BatchOrder order_;
};

}  // namespace polyattn::train
