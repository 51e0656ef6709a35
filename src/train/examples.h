// The data of a task as batches of tensors.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "augment/image.h"
#include "train/run/config.h"
#include "train/run/records.h"
#include "train/task_data.h"

namespace polyattn::train {

struct Batch {
  // Images [B, C, H, W] f32, tokens [B, N] i64, of pairs [2 B, N], the two of a
  // pair one after the other, or points [B, 2] f64.
  torch::Tensor inputs;
  torch::Tensor targets;  // classes [rows] i64, or exact values [B] f64
  torch::Tensor lengths;  // of sequences, i64, of each row; undefined otherwise
  // mixup and cutmix: targets count `share`, others the rest. Undefined without
  // it.
  torch::Tensor others;
  double share = 1;
  std::int64_t items = 0;  // images, sequences or tokens in it
};

// An image as it is evaluated, before it is normalised.
struct TestImage {
  augment::Image pixels;
  std::string label;  // the name of its class
};

// Batches are functions of the config and of their index. They are made in
// plain loops, without torch's threads, so that making them on another thread
// does not take these from the training. Batches of images may take threads of
// their own (train.workers).
class Examples {
 public:
  virtual ~Examples() = default;

  virtual std::int64_t batches_per_epoch() const = 0;

  // Counted over all epochs. One thread at a time.
  virtual Batch train_batch(std::int64_t index) = 0;

  // The whole set that is evaluated on, once, in order.
  virtual std::int64_t test_batches() const = 0;
  virtual Batch test_batch(std::int64_t index) const = 0;

  // Examples of it: images or sequences; predicted tokens of a text.
  virtual std::int64_t test_count() const = 0;

  // The bytes that these stand for.
  virtual std::int64_t test_bytes() const { return test_count(); }

  // What a token of a text stands for, if that is no byte.
  virtual std::optional<std::string> token_bytes(std::int64_t /*token*/) const {
    return {};
  }

  // Of images.
  virtual std::optional<TestImage> test_image(std::int64_t /*index*/) const {
    return {};
  }

  // By which images were normalised; none for other examples.
  virtual std::optional<run::PixelStatistics> pixels() const { return {}; }

  // Of a differential equation, the points of its grid: the batch of every
  // step. Its test batches are points with the exact solution as targets.
  virtual const Batch* whole() const { return nullptr; }

  // What items are called: "images", "sequences", "tokens", "points".
  virtual const char* unit() const = 0;
};

// Throws what check_examples() throws.
std::unique_ptr<Examples> make_examples(std::shared_ptr<const TaskData> data,
                                        const run::Config& config);

}  // namespace polyattn::train
