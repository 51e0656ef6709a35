// A text as batches: windows of `context` tokens at random places, and what
// follows each token.
#pragma once

#include <memory>
#include <string>

#include "train/examples.h"
#include "train/text_tokens.h"

namespace polyattn::train {

class TextExamples : public Examples {
 public:
  TextExamples(std::shared_ptr<const void> owner,
               const data::TextSplits& splits, const run::Config& config);

  // As many as it takes to read as many tokens as the text has.
  std::int64_t batches_per_epoch() const override;
  Batch train_batch(std::int64_t index) override;

  // Windows one after the other: every token but the first is predicted once.
  std::int64_t test_batches() const override;
  Batch test_batch(std::int64_t index) const override;
  std::int64_t test_count() const override { return evaluated_.size() - 1; }
  std::int64_t test_bytes() const override;
  std::optional<std::string> token_bytes(std::int64_t token) const override;
  const char* unit() const override { return "tokens"; }

 private:
  std::shared_ptr<const void> owner_;
  std::shared_ptr<const data::TextTokens> tokens_;
  TextPart train_;
  TextPart evaluated_;
  std::int64_t context_;
  std::int64_t batch_;
  std::uint64_t seed_;
};

}  // namespace polyattn::train
