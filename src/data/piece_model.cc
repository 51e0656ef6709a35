#include "data/piece_model.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <charconv>
#include <cstddef>
#include <unordered_map>
#include <utility>

#include "data/lines.h"

namespace polyattn::data {
namespace {

using sentencepiece::SentencePieceProcessor;

// What stands for a blank in pieces, U+2581.
constexpr std::string_view kBlank = "\xe2\x96\x81";

// The lines of a text, without their newlines, which no piece is to hold.
class Lines : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(std::string_view text) : left_(text) { take(); }

  bool done() const override { return done_; }
  void Next() override { take(); }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  void take() {
    done_ = left_.empty();
    const std::string_view line = first_line(left_);
    left_.remove_prefix(line.size());
    line_ = line.substr(0, line.find('\n'));
  }

  std::string_view left_;
  std::string line_;
  bool done_ = false;
};

// "<0x0A>"
std::string byte_of(const std::string& piece) {
  unsigned value = 0;
  const char* const digits = piece.data() + 3;
  if (piece.size() == 6) std::from_chars(digits, digits + 2, value, 16);
  return {static_cast<char>(value)};
}

std::string text_of(const SentencePieceProcessor& processor, int id) {
  const std::string& piece = processor.IdToPiece(id);
  if (processor.IsByte(id)) return byte_of(piece);
  if (processor.IsControl(id) || processor.IsUnknown(id) ||
      processor.IsUnused(id))
    return "";
  std::string text;
  std::string_view left = piece;
  while (!left.empty()) {
    const bool blank = left.starts_with(kBlank);
    text += blank ? ' ' : left.front();
    left.remove_prefix(blank ? kBlank.size() : 1);
  }
  return text;
}

// What the library says of its source code means nothing to a user.
std::string reason_of(const sentencepiece::util::Status& status) {
  if (status.ok()) return "";
  std::string text = status.ToString();
  const std::size_t end = text.rfind("] ");
  if (end != std::string::npos) text.erase(0, end + 2);
  while (text.ends_with('.')) text.pop_back();
  return text.empty() ? "it cannot be read" : text;
}

class Model : public PieceModel {
 public:
  sentencepiece::util::Status load(const std::string& model) {
    return processor_.LoadFromSerializedProto(model);
  }

  std::vector<std::string> pieces() const override {
    std::vector<std::string> all;
    const int count = processor_.GetPieceSize();
    all.reserve(static_cast<std::size_t>(count));
    for (int id = 0; id < count; ++id) all.push_back(text_of(processor_, id));
    return all;
  }

  bool encode(std::string_view line, std::vector<int>& tokens) const override {
    return processor_.Encode({line.data(), line.size()}, &tokens).ok();
  }

 private:
  SentencePieceProcessor processor_;
};

}  // namespace
}  // namespace polyattn::data

void polyattn_load_pieces(const std::string& model,
                          std::unique_ptr<polyattn::data::PieceModel>& loaded,
                          std::string& error) {
  auto own = std::make_unique<polyattn::data::Model>();
  error = polyattn::data::reason_of(own->load(model));
  if (error.empty()) loaded = std::move(own);
}

void polyattn_learn_pieces(const polyattn::data::LearnOptions& options,
                           std::string_view text, std::string& model,
                           std::string& error) {
  const std::unordered_map<std::string, std::string> settings = {
      {"model_type", options.bpe ? "bpe" : "unigram"},
      {"vocab_size", std::to_string(options.pieces)},
      {"normalization_rule_name", "identity"},
      {"remove_extra_whitespaces", "false"},
      {"add_dummy_prefix", "false"},
      {"byte_fallback", "true"},
      {"unk_id", "0"},
      {"bos_id", "-1"},
      {"eos_id", "-1"},
      {"pad_id", "-1"},
      // No line is left out for its length.
      {"max_sentence_length", std::to_string(std::int64_t{1} << 30)},
      // The order of additions, and with it the model, is of the threads.
      {"num_threads", "1"},
      {"minloglevel", "3"}};
  polyattn::data::Lines lines(text);
  error = polyattn::data::reason_of(
      sentencepiece::SentencePieceTrainer::Train(settings, &lines, &model));
}
