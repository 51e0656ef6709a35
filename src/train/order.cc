#include "train/order.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "train/random.h"

namespace polyattn::train {
namespace {

// Batches whose examples are sorted together.
constexpr std::int64_t kBucketBatches = 32;

template <typename T>
void shuffle(std::vector<T>& values, Random& random) {
  for (auto i = static_cast<std::int64_t>(values.size()) - 1; i > 0; --i) {
    std::swap(values[static_cast<std::size_t>(i)],
              values[static_cast<std::size_t>(random.below(i + 1))]);
  }
}

}  // namespace

BatchOrder::BatchOrder(const OrderOptions& options,
                       std::span<const std::int64_t> lengths)
    : options_(options), lengths_(lengths.begin(), lengths.end()) {
  if (options.batch < 1 || options.count < options.batch) {
    throw std::invalid_argument("[train] a batch of " +
                                std::to_string(options.batch) + " needs more " +
                                "than the " + std::to_string(options.count) +
                                " training examples: lower train.batch");
  }
}

std::span<const std::int64_t> BatchOrder::batch(std::int64_t index) {
  const std::int64_t epoch = index / batches_per_epoch();
  if (epoch != epoch_) make_epoch(epoch);
  const auto first =
      static_cast<std::size_t>((index % batches_per_epoch()) * options_.batch);
  return std::span(order_).subspan(first,
                                   static_cast<std::size_t>(options_.batch));
}

void BatchOrder::make_epoch(std::int64_t epoch) {
  Random random(options_.seed, Stream::kOrder,
                static_cast<std::uint64_t>(epoch));
  order_.resize(static_cast<std::size_t>(options_.count));
  std::iota(order_.begin(), order_.end(), 0);
  shuffle(order_, random);
  if (options_.repeats > 1) repeat();
  order_.resize(static_cast<std::size_t>(batches_per_epoch() * options_.batch));
  if (!lengths_.empty()) sort_by_length(random);
  epoch_ = epoch;
}

void BatchOrder::repeat() {
  std::vector<std::int64_t> repeated(order_.size());
  for (std::size_t i = 0; i < order_.size(); ++i) {
    repeated[i] = order_[i / static_cast<std::size_t>(options_.repeats)];
  }
  order_ = std::move(repeated);
}

void BatchOrder::sort_by_length(Random& random) {
  const auto bucket = static_cast<std::size_t>(kBucketBatches * options_.batch);
  for (std::size_t first = 0; first < order_.size(); first += bucket) {
    const auto begin = order_.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = order_.begin() + static_cast<std::ptrdiff_t>(std::min(
                                          first + bucket, order_.size()));
    std::stable_sort(begin, end, [&](std::int64_t a, std::int64_t b) {
      return lengths_[static_cast<std::size_t>(a)] <
             lengths_[static_cast<std::size_t>(b)];
    });
  }
  std::vector<std::int64_t> batches(
      static_cast<std::size_t>(batches_per_epoch()));
  std::iota(batches.begin(), batches.end(), 0);
  shuffle(batches, random);
  std::vector<std::int64_t> moved;
  moved.reserve(order_.size());
  for (const std::int64_t batch : batches) {
    const auto first = order_.begin() + batch * options_.batch;
    moved.insert(moved.end(), first, first + options_.batch);
  }
  order_ = std::move(moved);
}

}  // namespace polyattn::train
