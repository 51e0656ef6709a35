// The characters of a TOML text, one after the other, and the values that they
// make.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "train/run/toml_reader.h"

namespace polyattn::run {

class TomlScanner {
 public:
  // The text must outlive the scanner and be valid UTF-8.
  explicit TomlScanner(std::string_view text) : text_(text) {}

  bool at_end() const { return at_ == text_.size(); }
  // '\0' at the end.
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  bool at_line_end() const;

  int line() const { return line_; }
  int column() const;

  void skip_blanks();
  // Takes the character if it is the next one.
  bool skip(char c);

  // The rest of a line: blanks, a comment, and the end.
  void finish_line();

  // One part of a key: bare or in quotes.
  std::string key_part();

  TomlValue value();

  // Throws TomlError with the place where the scanner is.
  [[noreturn]] void refuse(const std::string& message) const;

 private:
  std::string basic_string();
  std::string literal_string();
  std::string escaped();
  // What is not a string: up to a blank, a comment or the end of the line.
  TomlValue bare_value();
  // The next character of a string in these quotes.
  char character_in(char quote);

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
};

// A boolean, integer, number, or date. Throws std::invalid_argument that says
// what is wrong.
TomlValue parse_bare_value(std::string_view token);

}  // namespace polyattn::run
