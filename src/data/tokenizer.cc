#include "data/tokenizer.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "data/lines.h"
#include "data/piece_model.h"

namespace polyattn::data {
namespace {

// Where it was built; empty if sentencepiece was not there.
constexpr const char* kLibrary = POLYATTN_PIECES_LIBRARY;

// Its symbols before those of the program, which may have another protobuf.
// Sanitizers do not go together with that; programs without libtorch do not
// need it.
#ifdef POLYATTN_SANITIZED
constexpr int kOwnSymbols = 0;
#else
constexpr int kOwnSymbols = RTLD_DEEPBIND;
#endif

struct Library {
  decltype(&polyattn_load_pieces) load = nullptr;
  decltype(&polyattn_learn_pieces) learn = nullptr;
  std::string error = {};
};

Library open_library() {
  if (*kLibrary == '\0')
    return {.error =
                "this polyattn was built without sentencepiece. Install "
                "libsentencepiece-dev and configure again"};
  // Beside the program, which may have been moved; models outlive it all.
  void* handle = nullptr;
  const std::string path = kLibrary;
  const std::string name = path.substr(path.rfind('/') + 1);
  for (const std::string& place : {"$ORIGIN/" + name, path}) {
    if (handle == nullptr)
      handle = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL | kOwnSymbols);
  }
  Library library;
  if (handle == nullptr) {
    library.error = ::dlerror();
    return library;
  }
  library.load = reinterpret_cast<decltype(library.load)>(
      ::dlsym(handle, "polyattn_load_pieces"));
  library.learn = reinterpret_cast<decltype(library.learn)>(
      ::dlsym(handle, "polyattn_learn_pieces"));
  if (library.load == nullptr || library.learn == nullptr)
    library.error = name + " is of another version of polyattn";
  return library;
}

// Loaded once.
const Library& library_for(const std::string& source) {
  static const Library library = open_library();
  if (library.error.empty()) return library;
  throw DataError(fmt::format(
      "cannot use {} as a tokenizer: {}, or leave task.tokenizer at \"bytes\"",
      source, library.error));
}

}  // namespace

Tokenizer::Tokenizer(std::string model, const std::string& source)
    : model_(std::move(model)), source_(source) {
  const auto refuse = [&](const std::string& why) {
    throw DataError(fmt::format(
        "cannot use {} as a tokenizer: {}: it must be a model of sentencepiece",
        source, why));
  };
  if (model_.empty() || model_.size() > kMaxTokenizerBytes)
    refuse(fmt::format("it has {} bytes", model_.size()));
  std::unique_ptr<PieceModel> loaded;
  std::string error;
  library_for(source).load(model_, loaded, error);
  if (!loaded) refuse(error);
  pieces_ = loaded->pieces();
  if (pieces_.size() < 2)
    refuse(fmt::format("it has {} pieces", pieces_.size()));
  processor_ = std::move(loaded);
}

Tokenizer Tokenizer::learn(Algorithm algorithm, std::int64_t pieces,
                           std::string_view text) {
  const bool bpe = algorithm == Algorithm::kBpe;
  const std::string source =
      fmt::format("{}:{}", bpe ? "bpe" : "unigram", pieces);
  std::string model, error;
  library_for(source).learn({.bpe = bpe, .pieces = pieces}, text, model, error);
  if (!error.empty()) {
    throw DataError(fmt::format(
        "cannot learn {} from a text of {} bytes: {}: use another number of "
        "pieces, or more text",
        source, text.size(), error));
  }
  return {std::move(model), source};
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> tokens;
  std::vector<int> found;
  std::string back;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view line = first_line(text.substr(at));
    const bool done = processor_->encode(line, found);
    back.clear();
    for (const int id : found) back += pieces_[static_cast<std::size_t>(id)];
    if (!done || back != line) {
      const auto differ =
          std::mismatch(line.begin(), line.end(), back.begin(), back.end());
      throw DataError(fmt::format(
          "the tokenizer {} does not give the text back: it changes byte {}. "
          "Bits per byte would be of another text. The text must be UTF-8 "
          "without U+2581, and the model trained with "
          "--normalization_rule_name=identity --remove_extra_whitespaces=false "
          "--add_dummy_prefix=false --byte_fallback=true",
          source_, at + static_cast<std::size_t>(differ.first - line.begin())));
    }
    tokens.insert(tokens.end(), found.begin(), found.end());
    at += line.size();
  }
  return tokens;
}

}  // namespace polyattn::data
