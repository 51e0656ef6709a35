#include "core/formula_lexer.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <numeric>
#include <string>
#include <system_error>
#include <vector>

namespace polyattn {
namespace {

constexpr std::string_view kWords[] = {"x",    "softmax", "exp", "sum",
                                       "relu", "sigmoid", "sqrt"};

char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
bool is_letter(char c) {
  return c == '_' || (to_lower(c) >= 'a' && to_lower(c) <= 'z');
}

// Levenshtein distance.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (const char c : a) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 1; j < row.size(); ++j) {
      const std::size_t change = diagonal + (c == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string unknown_word(std::string_view word, std::string_view lower) {
  if (lower == "n") return "the number of keys is written N, not n";
  const std::string text = "unknown word '" + std::string(word.substr(0, 32));
  const std::string_view nearest = std::ranges::min(
      kWords, {}, [&](std::string_view w) { return distance(lower, w); });
  // Beyond one slip in three letters a guess would only mislead.
  if (3 * distance(lower, nearest) <= lower.size()) {
    return text + "', did you mean " + std::string(nearest) + "?";
  }
  return text + "': a formula knows x, N, softmax, exp/sum, sigmoid and relu";
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result(text);
  std::replace_if(
      result.begin(), result.end(), [](char c) { return c < ' ' || c > '~'; },
      '?');
  return result;
}

Token Lexer::next() {
  while (position_ < text_.size() && is_space(text_[position_])) ++position_;
  const std::string_view rest = text_.substr(position_);
  Token token{kEnd, position_, rest, 0};
  if (rest.empty()) return token;
  const std::size_t length = is_digit(rest[0]) || rest[0] == '.'
                                 ? read_number(token)
                             : is_letter(rest[0]) ? read_word(token)
                                                  : read_symbol(token);
  token.text = rest.substr(0, length);
  position_ += length;
  return token;
}

void Lexer::fail(const Token& token, std::string_view message) const {
  throw FormulaError(text_, token.column, message);
}

std::size_t Lexer::read_number(Token& token) const {
  token.name = kNumber;
  const char* begin = token.text.data();
  const auto [end, error] =
      std::from_chars(begin, begin + token.text.size(), token.value);
  if (error == std::errc::result_out_of_range) {
    fail(token, "this number is outside the range of a double");
  }
  if (error != std::errc{}) fail(token, "a number needs a digit");
  return static_cast<std::size_t>(end - begin);
}

std::size_t Lexer::read_word(Token& token) const {
  const auto end = std::ranges::find_if_not(token.text, is_letter);
  const std::string_view word(token.text.begin(), end);
  std::string lower(word);
  std::ranges::transform(lower, lower.begin(), to_lower);
  const auto known = std::ranges::find(kWords, lower);
  if (word != "N" && known == std::end(kWords)) {
    fail(token, unknown_word(word, lower));
  }
  token.name = word == "N" ? word : *known;
  return word.size();
}

std::size_t Lexer::read_symbol(Token& token) const {
  token.name = token.text.substr(0, 1);
  if (std::string_view("+-*/^()").find(token.name) == std::string_view::npos) {
    fail(token, "this character has no meaning in a formula");
  }
  return 1;
}

}  // namespace polyattn
