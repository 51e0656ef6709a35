// Text to tokens, for the parser of formulas.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "polyattn/activation.h"

namespace polyattn {

inline constexpr std::string_view kNumber = "number";
inline constexpr std::string_view kEnd = "end";

struct Token {
  // kNumber, kEnd, or the word or symbol itself, words in lower case but N.
  std::string_view name;
  std::size_t column = 0;
  std::string_view text;
  double value = 0;  // of a number
};

// The <cctype> functions depend on the locale.
inline bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

// One column per byte: bytes that do not print become '?', so that a caret
// below stays in place.
std::string printable(std::string_view text);

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::string_view text() const { return text_; }

  // Throws FormulaError.
  Token next();

 private:
  [[noreturn]] void fail(const Token& token, std::string_view message) const;
  std::size_t read_number(Token& token) const;
  std::size_t read_word(Token& token) const;
  std::size_t read_symbol(Token& token) const;

  std::string_view text_;
  std::size_t position_ = 0;
};

}  // namespace polyattn
