// A text as batches: windows of `context` bytes at random places, and what
// follows each byte.
#pragma once

#include <memory>
#include <string>

#include "train/examples.h"

namespace polyattn::train {

class TextExamples : public Examples {
 public:
  TextExamples(std::shared_ptr<const void> owner,
               const data::TextSplits& splits, const run::Config& config);

  // As many as it takes to read as many bytes as the text has.
  std::int64_t batches_per_epoch() const override;
  Batch train_batch(std::int64_t index) override;

  // Windows one after the other: every byte but the first is predicted once.
  std::int64_t test_batches() const override;
  Batch test_batch(std::int64_t index) const override;
  std::int64_t test_count() const override { return test_bytes_ - 1; }
  const char* unit() const override { return "tokens"; }

 private:
  std::shared_ptr<const void> owner_;
  const data::TextSplits& splits_;
  const std::string& evaluated_;
  std::int64_t train_bytes_;
  std::int64_t test_bytes_;
  std::int64_t context_;
  std::int64_t batch_;
  std::uint64_t seed_;
};

}  // namespace polyattn::train
