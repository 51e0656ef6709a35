// Sequences of different lengths, or pairs of them, as batches, padded to the
// longest in each.
#pragma once

#include <memory>
#include <span>

#include "train/examples.h"
#include "train/order.h"

namespace polyattn::train {

class SequenceExamples : public Examples {
 public:
  SequenceExamples(std::shared_ptr<const void> owner,
                   const data::SequenceSplits& splits,
                   const run::Config& config);

  std::int64_t batches_per_epoch() const override;
  Batch train_batch(std::int64_t index) override;
  std::int64_t test_batches() const override;
  Batch test_batch(std::int64_t index) const override;
  std::int64_t test_count() const override {
    return static_cast<std::int64_t>(test_order_.size());
  }
  const char* unit() const override {
    return splits_.train.towers == 2 ? "pairs" : "sequences";
  }

 private:
  std::shared_ptr<const void> owner_;
  const data::SequenceSplits& splits_;
  const data::SequenceSet& evaluated_;
  std::vector<std::int64_t> test_order_;  // by length
  BatchOrder order_;
};

}  // namespace polyattn::train
