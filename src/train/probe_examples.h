// Probes as batches: inputs are tokens, targets the answers, and what is not
// asked does not count.
#pragma once

#include <memory>
#include <span>

#include "train/examples.h"
#include "train/order.h"

namespace polyattn::train {

class ProbeExamples : public Examples {
 public:
  ProbeExamples(std::shared_ptr<const void> owner,
                const data::ProbeSplits& splits, const run::Config& config);

  std::int64_t batches_per_epoch() const override;
  Batch train_batch(std::int64_t index) override;
  std::int64_t test_batches() const override;
  Batch test_batch(std::int64_t index) const override;
  std::int64_t test_count() const override { return test_count_; }
  const char* unit() const override { return "sequences"; }

 private:
  std::shared_ptr<const void> owner_;
  const data::ProbeSplits& splits_;
  const data::ProbeSet& evaluated_;
  std::int64_t test_count_;
  BatchOrder order_;
};

}  // namespace polyattn::train
