// In which order the examples come. Batch i is a function of the seed and of i
// alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace polyattn::train {

struct OrderOptions {
  std::int64_t count = 0;  // examples
  std::int64_t batch = 0;
  std::uint64_t seed = 0;
  // Each example comes so many times, one after the other; an epoch has as many
  // batches as ever, and so only some of the examples.
  std::int64_t repeats = 1;
};

// Every epoch is a new permutation, cut into batches; what is left over at its
// end is left out. Keeps the last epoch that was asked for, so that one thread
// at a time may use it.
class BatchOrder {
 public:
  // With lengths (one for each example), the examples of some neighbouring
  // batches are sorted by length before they are cut, so that a batch holds
  // little padding; the batches themselves then come in random order. Throws
  // std::invalid_argument if there is less than one batch.
  explicit BatchOrder(const OrderOptions& options,
                      std::span<const std::int64_t> lengths = {});

  std::int64_t batches_per_epoch() const {
    return options_.count / options_.batch;
  }

  // The examples of batch `index`, counted over all epochs. Valid until the
  // next call.
  std::span<const std::int64_t> batch(std::int64_t index);

 private:
  void make_epoch(std::int64_t epoch);
  void repeat();
  void sort_by_length(class Random& random);

  OrderOptions options_;
  std::vector<std::int64_t> lengths_;
  std::int64_t epoch_ = -1;
  std::vector<std::int64_t> order_;
};

}  // namespace polyattn::train
