#include "train/probe_examples.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "train/limit.h"

namespace polyattn::train {
namespace {

// Of the batches that are evaluated: at most so many examples, and fewer of
// long ones, whose rows must fit into memory.
constexpr std::int64_t kMostTestExamples = 256;
constexpr std::int64_t kTestTokens = 32768;

std::int64_t test_examples(std::int64_t length) {
  return std::clamp<std::int64_t>(kTestTokens / length, 1, kMostTestExamples);
}

// Targets that do not count (torch's cross entropy).
constexpr std::int64_t kIgnored = -100;

Batch gather(const data::ProbeSet& set, std::span<const std::int64_t> chosen) {
  const auto rows = static_cast<std::int64_t>(chosen.size());
  Batch batch;
  batch.items = rows;
  batch.inputs = torch::empty({rows, set.length}, torch::kLong);
  batch.targets = torch::empty({rows * set.length}, torch::kLong);
  auto* input = batch.inputs.data_ptr<std::int64_t>();
  auto* target = batch.targets.data_ptr<std::int64_t>();
  for (const std::int64_t i : chosen) {
    const auto first = static_cast<std::size_t>(i * set.length);
    for (std::size_t j = first;
         j < first + static_cast<std::size_t>(set.length); ++j) {
      *input++ = set.tokens[j];
      *target++ = set.answers[j] == 0 ? kIgnored : set.answers[j];
    }
  }
  return batch;
}

}  // namespace

ProbeExamples::ProbeExamples(std::shared_ptr<const void> owner,
                             const data::ProbeSplits& splits,
                             const run::Config& config)
    : owner_(std::move(owner)),
      splits_(splits),
      evaluated_(evaluated_part(splits, config.task)),
      test_count_(limited(evaluated_.count(), config.task.test_limit)),
      order_({.count = limited(splits.train.count(), config.task.train_limit),
              .batch = config.train.batch,
              .seed = static_cast<std::uint64_t>(config.train.seed)}) {}

std::int64_t ProbeExamples::batches_per_epoch() const {
  return order_.batches_per_epoch();
}

Batch ProbeExamples::train_batch(std::int64_t index) {
  return gather(splits_.train, order_.batch(index));
}

std::int64_t ProbeExamples::test_batches() const {
  const std::int64_t each = test_examples(evaluated_.length);
  return (test_count_ + each - 1) / each;
}

Batch ProbeExamples::test_batch(std::int64_t index) const {
  const std::int64_t each = test_examples(evaluated_.length);
  std::vector<std::int64_t> chosen(
      static_cast<std::size_t>(std::min(each, test_count_ - index * each)));
  std::iota(chosen.begin(), chosen.end(), index * each);
  return gather(evaluated_, chosen);
}

}  // namespace polyattn::train
