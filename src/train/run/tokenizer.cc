#include "train/run/tokenizer.h"

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>
#include <string_view>

namespace polyattn::run {
namespace {

// 256 of them are the bytes. No text here needs more than the most.
constexpr std::int64_t kLeastPieces = 300;
constexpr std::int64_t kMostPieces = 65536;

std::int64_t parse_pieces(std::string_view text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && stop == end && value >= kLeastPieces &&
      value <= kMostPieces)
    return value;
  throw std::invalid_argument(
      fmt::format("has {} pieces, must have from {} to {}", text, kLeastPieces,
                  kMostPieces));
}

}  // namespace

TokenizerChoice parse_tokenizer(const std::string& text) {
  using Kind = TokenizerChoice::Kind;
  const std::string_view view = text;
  if (text == "bytes") return {};
  for (const auto& [name, kind] :
       {std::pair{std::string_view("bpe:"), Kind::kBpe},
        std::pair{std::string_view("unigram:"), Kind::kUnigram}}) {
    if (view.starts_with(name))
      return {.kind = kind, .pieces = parse_pieces(view.substr(name.size()))};
  }
  if (view.ends_with(".model")) return {.kind = Kind::kFile};
  throw std::invalid_argument(
      "must be bytes, bpe:N, unigram:N or a file that ends in .model");
}

}  // namespace polyattn::run
