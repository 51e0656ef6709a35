#include "train/text_tokens.h"

#include <fmt/format.h>

#include <utility>

#include "base/text_file.h"
#include "base/utf8.h"
#include "data/file.h"
#include "data/sha256.h"
#include "data/tokenizer.h"
#include "train/run/records.h"
#include "train/run/tokenizer.h"

namespace polyattn::train {
namespace {

namespace fs = std::filesystem;
using run::TokenizerChoice;

constexpr const char* kFile = "tokenizer.model";

// The first bytes, and no half of a character.
void cut(std::string& text, std::int64_t limit) {
  const auto size = static_cast<std::size_t>(limited(text.size(), limit));
  if (size == text.size()) return;
  text.resize(size);
  // No more than three bytes of a character are without its last one.
  const std::size_t whole = base::utf8_prefix(text);
  if (whole + 3 >= size) text.resize(whole);
}

data::Tokenizer make_tokenizer(const data::TextSplits& text,
                               const run::TaskConfig& task,
                               const std::string& model) {
  if (!model.empty()) return {model, kFile};
  const TokenizerChoice choice = run::parse_tokenizer(task.tokenizer);
  if (choice.kind == TokenizerChoice::Kind::kFile) {
    return {data::read_text(task.tokenizer, data::kMaxTokenizerBytes),
            task.tokenizer};
  }
  return data::Tokenizer::learn(choice.kind == TokenizerChoice::Kind::kBpe
                                    ? data::Tokenizer::Algorithm::kBpe
                                    : data::Tokenizer::Algorithm::kUnigram,
                                choice.pieces, text.train);
}

std::optional<std::string> sha256_before(const fs::path& folder) {
  if (!fs::exists(folder / "run.json")) return std::nullopt;
  return run::read_run_info(folder).tokenizer;
}

}  // namespace

TextPart train_text(const data::TextSplits& text, const run::TaskConfig& task) {
  if (text.tokens) return TextPart(text.tokens->train);
  return {text.train, task.train_limit};
}

TextPart evaluated_text(const data::TextSplits& text,
                        const run::TaskConfig& task) {
  if (text.tokens) return TextPart(evaluated_part(*text.tokens, task));
  return {evaluated_part(text, task), task.test_limit};
}

void make_tokens(data::TextSplits& text, const run::TaskConfig& task,
                 const std::string& model) {
  if (task.tokenizer == "bytes") return;
  cut(text.train, task.train_limit);
  cut(text.test, task.test_limit);
  cut(text.validation, task.test_limit);
  const data::Tokenizer tokenizer = make_tokenizer(text, task, model);
  text.tokens = std::make_shared<const data::TextTokens>(
      data::TextTokens{.train = tokenizer.encode(text.train),
                       .test = tokenizer.encode(text.test),
                       .validation = tokenizer.encode(text.validation),
                       .pieces = tokenizer.pieces(),
                       .model = tokenizer.model()});
}

std::string tokenizer_of(const fs::path& folder, const run::TaskConfig& task) {
  if (task.tokenizer == "bytes") return {};
  const auto before = sha256_before(folder);
  if (!before) return {};
  const fs::path file = folder / kFile;
  std::string model = data::read_text(file, data::kMaxTokenizerBytes);
  const std::string found = data::sha256_of(model);
  if (found == *before) return model;
  throw data::DataError(fmt::format(
      "{} is not the tokenizer that the run was trained with: its sha256 is "
      "{}, and run.json has {}. Bring the file back from where the run was "
      "copied",
      file.string(), found, *before));
}

std::optional<std::string> keep_tokenizer(const fs::path& folder,
                                          const TaskData& data) {
  const auto* text = std::get_if<data::TextSplits>(&data);
  if (text == nullptr || !text->tokens) return std::nullopt;
  std::string own = data::sha256_of(text->tokens->model);
  const auto before = sha256_before(folder);
  if (before && *before != own) {
    throw run::RecordError(fmt::format(
        "[train] {} began with another tokenizer (sha256 {}) than "
        "task.tokenizer now makes (sha256 {}): the text or the file has "
        "changed; choose another folder with --out",
        folder.string(), *before, own));
  }
  base::write_text_file(folder / kFile, text->tokens->model);
  return own;
}

}  // namespace polyattn::train
