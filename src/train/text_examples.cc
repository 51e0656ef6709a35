#include "train/text_examples.h"

#include <algorithm>
#include <string>
#include <utility>

#include "train/limit.h"
#include "train/random.h"

namespace polyattn::train {
namespace {

// Of the batches that are evaluated: at most so many windows, and fewer of long
// ones, whose rows must fit into memory.
constexpr std::int64_t kMostTestWindows = 32;
constexpr std::int64_t kTestBytes = 32768;

std::int64_t test_windows(std::int64_t context) {
  return std::clamp<std::int64_t>(kTestBytes / context, 1, kMostTestWindows);
}

// Targets that do not count (torch's cross entropy).
constexpr std::int64_t kIgnored = -100;

std::int64_t byte_at(const std::string& text, std::int64_t place) {
  return static_cast<unsigned char>(text[static_cast<std::size_t>(place)]);
}

Batch make_batch(std::int64_t rows, std::int64_t context) {
  Batch batch;
  batch.inputs = torch::empty({rows, context}, torch::kLong);
  batch.targets = torch::empty({rows * context}, torch::kLong);
  batch.items = rows * context;
  return batch;
}

}  // namespace

TextExamples::TextExamples(std::shared_ptr<const void> owner,
                           const data::TextSplits& splits,
                           const run::Config& config)
    : owner_(std::move(owner)),
      splits_(splits),
      evaluated_(evaluated_part(splits, config.task)),
      train_bytes_(limited(splits.train.size(), config.task.train_limit)),
      test_bytes_(limited(evaluated_.size(), config.task.test_limit)),
      context_(config.task.context),
      batch_(config.train.batch),
      seed_(static_cast<std::uint64_t>(config.train.seed)) {}

std::int64_t TextExamples::batches_per_epoch() const {
  return std::max<std::int64_t>(1, train_bytes_ / (batch_ * context_));
}

Batch TextExamples::train_batch(std::int64_t index) {
  Random random(seed_, Stream::kOrder, static_cast<std::uint64_t>(index));
  Batch batch = make_batch(batch_, context_);
  auto* inputs = batch.inputs.data_ptr<std::int64_t>();
  auto* targets = batch.targets.data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < batch_; ++row) {
    const std::int64_t first = random.below(train_bytes_ - context_);
    for (std::int64_t i = 0; i < context_; ++i) {
      *inputs++ = byte_at(splits_.train, first + i);
      *targets++ = byte_at(splits_.train, first + i + 1);
    }
  }
  return batch;
}

std::int64_t TextExamples::test_batches() const {
  const std::int64_t windows = (test_bytes_ - 1 + context_ - 1) / context_;
  const std::int64_t each = test_windows(context_);
  return (windows + each - 1) / each;
}

Batch TextExamples::test_batch(std::int64_t index) const {
  const std::int64_t predicted = test_bytes_ - 1;
  const std::int64_t each = test_windows(context_);
  const std::int64_t first = index * each * context_;
  const std::int64_t windows =
      std::min(each, (predicted - first + context_ - 1) / context_);
  Batch batch = make_batch(windows, context_);
  auto* inputs = batch.inputs.data_ptr<std::int64_t>();
  auto* targets = batch.targets.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < windows * context_; ++i) {
    const bool inside = first + i < predicted;
    inputs[i] = inside ? byte_at(evaluated_, first + i) : 0;
    targets[i] = inside ? byte_at(evaluated_, first + i + 1) : kIgnored;
  }
  return batch;
}

}  // namespace polyattn::train
