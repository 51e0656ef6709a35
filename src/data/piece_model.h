// What data/tokenizer.cc asks of sentencepiece.
//
// It is in a library of its own, which is loaded when it is first needed and
// keeps its symbols to itself: sentencepiece brings a protobuf of its own,
// which does not go together with that of libtorch in one program.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace polyattn::data {

class PieceModel {
 public:
  virtual ~PieceModel() = default;

  // The bytes that each token stands for; none for those that mark something.
  virtual std::vector<std::string> pieces() const = 0;

  // False if it cannot.
  virtual bool encode(std::string_view line,
                      std::vector<int>& tokens) const = 0;
};

struct LearnOptions {
  bool bpe = false;  // or unigram
  std::int64_t pieces = 0;
};

}  // namespace polyattn::data

// What the library has. Either the result is there, or `error` says why not.
extern "C" {
void polyattn_load_pieces(const std::string& model,
                          std::unique_ptr<polyattn::data::PieceModel>& loaded,
                          std::string& error);
void polyattn_learn_pieces(const polyattn::data::LearnOptions& options,
                           std::string_view text, std::string& model,
                           std::string& error);
}
