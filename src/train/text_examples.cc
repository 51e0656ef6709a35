#include "train/text_examples.h"

#include <algorithm>
#include <string>
#include <utility>

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
      tokens_(splits.tokens),
      train_(train_text(splits, config.task)),
      evaluated_(evaluated_text(splits, config.task)),
      context_(config.task.context),
      batch_(config.train.batch),
      seed_(static_cast<std::uint64_t>(config.train.seed)) {}

std::int64_t TextExamples::batches_per_epoch() const {
  return std::max<std::int64_t>(1, train_.size() / (batch_ * context_));
}

Batch TextExamples::train_batch(std::int64_t index) {
  Random random(seed_, Stream::kOrder, static_cast<std::uint64_t>(index));
  Batch batch = make_batch(batch_, context_);
  auto* inputs = batch.inputs.data_ptr<std::int64_t>();
  auto* targets = batch.targets.data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < batch_; ++row) {
    const std::int64_t first = random.below(train_.size() - context_);
    for (std::int64_t i = 0; i < context_; ++i) {
      *inputs++ = train_[first + i];
      *targets++ = train_[first + i + 1];
    }
  }
  return batch;
}

std::int64_t TextExamples::test_bytes() const {
  if (!tokens_) return test_count();
  std::int64_t bytes = 0;
  for (std::int64_t i = 1; i < evaluated_.size(); ++i) {
    bytes +=
        std::ssize(tokens_->pieces[static_cast<std::size_t>(evaluated_[i])]);
  }
  return bytes;
}

std::optional<std::string> TextExamples::token_bytes(std::int64_t token) const {
  if (!tokens_) return std::nullopt;
  return tokens_->pieces[static_cast<std::size_t>(token)];
}

std::int64_t TextExamples::test_batches() const {
  const std::int64_t windows = (test_count() + context_ - 1) / context_;
  const std::int64_t each = test_windows(context_);
  return (windows + each - 1) / each;
}

Batch TextExamples::test_batch(std::int64_t index) const {
  const std::int64_t predicted = test_count();
  const std::int64_t each = test_windows(context_);
  const std::int64_t first = index * each * context_;
  const std::int64_t windows =
      std::min(each, (predicted - first + context_ - 1) / context_);
  Batch batch = make_batch(windows, context_);
  auto* inputs = batch.inputs.data_ptr<std::int64_t>();
  auto* targets = batch.targets.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < windows * context_; ++i) {
    const bool inside = first + i < predicted;
    inputs[i] = inside ? evaluated_[first + i] : 0;
    targets[i] = inside ? evaluated_[first + i + 1] : kIgnored;
  }
  return batch;
}

}  // namespace polyattn::train
