#include "train/sequence_examples.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "train/limit.h"

namespace polyattn::train {
namespace {

constexpr std::int64_t kTestSequences = 64;

// Of sequence i, counted over the pairs.
std::int64_t row_length(const data::SequenceSet& set, std::int64_t i) {
  const auto at = static_cast<std::size_t>(i);
  return set.begin[at + 1] - set.begin[at];
}

// Of the longer one of a pair.
std::int64_t length_of(const data::SequenceSet& set, std::int64_t i) {
  std::int64_t length = 0;
  for (std::int64_t t = 0; t < set.towers; ++t) {
    length = std::max(length, row_length(set, i * set.towers + t));
  }
  return length;
}

std::vector<std::int64_t> lengths_of(const data::SequenceSet& set,
                                     std::int64_t count) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < count; ++i) lengths.push_back(length_of(set, i));
  return lengths;
}

Batch gather(const data::SequenceSet& set,
             std::span<const std::int64_t> chosen) {
  const auto count = static_cast<std::int64_t>(chosen.size());
  const std::int64_t rows = count * set.towers;
  std::int64_t longest = 1;
  for (const std::int64_t i : chosen) {
    longest = std::max(longest, length_of(set, i));
  }
  Batch batch;
  batch.items = count;
  batch.inputs = torch::empty({rows, longest}, torch::kLong);
  batch.targets = torch::empty({count}, torch::kLong);
  batch.lengths = torch::empty({rows}, torch::kLong);
  auto* row = batch.inputs.data_ptr<std::int64_t>();
  auto* target = batch.targets.data_ptr<std::int64_t>();
  auto* length = batch.lengths.data_ptr<std::int64_t>();
  for (const std::int64_t i : chosen) {
    *target++ = set.labels[static_cast<std::size_t>(i)];
    for (std::int64_t t = i * set.towers; t < (i + 1) * set.towers; ++t) {
      const auto first =
          set.tokens.begin() + set.begin[static_cast<std::size_t>(t)];
      *length = row_length(set, t);
      std::fill(std::copy(first, first + *length, row), row + longest, 0);
      ++length;
      row += longest;
    }
  }
  return batch;
}

}  // namespace

SequenceExamples::SequenceExamples(std::shared_ptr<const void> owner,
                                   const data::SequenceSplits& splits,
                                   const run::Config& config)
    : owner_(std::move(owner)),
      splits_(splits),
      evaluated_(evaluated_part(splits, config.task)),
      test_order_(static_cast<std::size_t>(
          limited(evaluated_.count(), config.task.test_limit))),
      order_({.count = limited(splits.train.count(), config.task.train_limit),
              .batch = config.train.batch,
              .seed = static_cast<std::uint64_t>(config.train.seed)},
             lengths_of(splits.train, limited(splits.train.count(),
                                              config.task.train_limit))) {
  std::iota(test_order_.begin(), test_order_.end(), 0);
  std::stable_sort(test_order_.begin(), test_order_.end(),
                   [&](std::int64_t a, std::int64_t b) {
                     return length_of(evaluated_, a) < length_of(evaluated_, b);
                   });
}

std::int64_t SequenceExamples::batches_per_epoch() const {
  return order_.batches_per_epoch();
}

Batch SequenceExamples::train_batch(std::int64_t index) {
  return gather(splits_.train, order_.batch(index));
}

std::int64_t SequenceExamples::test_batches() const {
  return (test_count() + kTestSequences - 1) / kTestSequences;
}

Batch SequenceExamples::test_batch(std::int64_t index) const {
  const std::int64_t first = index * kTestSequences;
  const std::int64_t count = std::min(kTestSequences, test_count() - first);
  return gather(evaluated_, std::span(test_order_)
                                .subspan(static_cast<std::size_t>(first),
                                         static_cast<std::size_t>(count)));
}

}  // namespace polyattn::train
