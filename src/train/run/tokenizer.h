// task.tokenizer: what the tokens of a text are.
#pragma once

#include <cstdint>
#include <string>

namespace polyattn::run {

struct TokenizerChoice {
  enum class Kind : std::uint8_t { kBytes, kFile, kBpe, kUnigram };

  Kind kind = Kind::kBytes;
  std::int64_t pieces = 0;  // of kBpe and kUnigram
};

// "bytes", "bpe:N", "unigram:N" or "FILE.model". Throws std::invalid_argument
// that says what is wrong, without the text.
TokenizerChoice parse_tokenizer(const std::string& text);

}  // namespace polyattn::run
