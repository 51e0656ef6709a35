// Tokens of more than a byte: a model of sentencepiece, read from a file or
// learned from a text. Without the library (data/piece_model.h) every function
// throws DataError.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/sets.h"

namespace polyattn::data {

class PieceModel;

// No model is longer.
inline constexpr std::uint64_t kMaxTokenizerBytes = 64 << 20;

class Tokenizer {
 public:
  enum class Algorithm : std::uint8_t { kBpe, kUnigram };

  // A model as the text of its file; `source` is its name for messages. Throws
  // DataError.
  Tokenizer(std::string model, const std::string& source);

  // A model of so many pieces from the lines of a text: without normalisation,
  // with bytes for what no piece has, so that every UTF-8 text comes back as it
  // was. The same text makes the same model. Throws DataError.
  static Tokenizer learn(Algorithm algorithm, std::int64_t pieces,
                         std::string_view text);

  // Its file.
  const std::string& model() const { return model_; }

  // The bytes that each token stands for; none for those that mark something.
  const std::vector<std::string>& pieces() const { return pieces_; }

  // Line by line. Throws DataError if the tokens do not give the text back.
  std::vector<std::int32_t> encode(std::string_view text) const;

 private:
  std::string model_;
  std::string source_;
  std::vector<std::string> pieces_;
  std::shared_ptr<const PieceModel> processor_;
};

}  // namespace polyattn::data
