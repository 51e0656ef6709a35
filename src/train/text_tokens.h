// The tokens of a text: its bytes, or the pieces of a tokenizer, which a run
// keeps in its folder as tokenizer.model.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/sets.h"
#include "train/limit.h"
#include "train/run/config.h"
#include "train/task_data.h"

namespace polyattn::train {

// The first tokens of a part of a text, which must stay where it is.
class TextPart {
 public:
  TextPart(const std::string& bytes, std::int64_t limit)
      : bytes_(bytes.data()), size_(limited(bytes.size(), limit)) {}
  explicit TextPart(const std::vector<std::int32_t>& pieces)
      : pieces_(pieces.data()), size_(std::ssize(pieces)) {}

  std::int64_t size() const { return size_; }
  std::int64_t operator[](std::int64_t i) const {
    return pieces_ != nullptr ? pieces_[i]
                              : static_cast<unsigned char>(bytes_[i]);
  }

 private:
  const char* bytes_ = nullptr;
  const std::int32_t* pieces_ = nullptr;
  std::int64_t size_;
};

// What is trained and evaluated on, within the limits of the task.
TextPart train_text(const data::TextSplits& text, const run::TaskConfig& task);
TextPart evaluated_text(const data::TextSplits& text,
                        const run::TaskConfig& task);

// Gives the text the tokens of task.tokenizer, or of `model`, the file of a
// tokenizer, if that is not empty. Pieces are learned from what is trained on.
// Limits count bytes, so that all tokenizers see the same text. Throws
// data::DataError.
void make_tokens(data::TextSplits& text, const run::TaskConfig& task,
                 const std::string& model);

// The file of a run's tokenizer; empty if its tokens are bytes, or it has not
// begun. Throws data::DataError if it is not what the run was trained with.
std::string tokenizer_of(const std::filesystem::path& folder,
                         const run::TaskConfig& task);

// Writes the tokenizer into the folder of a run that begins, and returns its
// sha256; none if tokens are bytes. Throws run::RecordError if the run began
// with another.
std::optional<std::string> keep_tokenizer(const std::filesystem::path& folder,
                                          const TaskData& data);

}  // namespace polyattn::train
