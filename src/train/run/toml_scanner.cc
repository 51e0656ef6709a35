#include "train/run/toml_scanner.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/utf8.h"

namespace polyattn::run {
namespace {

bool is_control(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
}

bool is_bare_key(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '-';
}

}  // namespace

bool TomlScanner::at_line_end() const {
  return at_end() || text_[at_] == '\n' || text_.substr(at_, 2) == "\r\n";
}

int TomlScanner::column() const {
  const auto before = text_.substr(line_start_, at_ - line_start_);
  const auto characters = std::count_if(
      before.begin(), before.end(),
      [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; });
  return static_cast<int>(characters) + 1;
}

void TomlScanner::refuse(const std::string& message) const {
  throw TomlError(message, line_, column());
}

void TomlScanner::skip_blanks() {
  while (peek() == ' ' || peek() == '\t') ++at_;
}

bool TomlScanner::skip(char c) {
  if (at_end() || text_[at_] != c) return false;
  ++at_;
  return true;
}

void TomlScanner::finish_line() {
  skip_blanks();
  if (skip('#')) {
    for (; !at_line_end(); ++at_) {
      if (is_control(text_[at_])) refuse("a control character in a comment");
    }
  }
  if (at_end()) return;
  if (!at_line_end()) refuse("the line must end here");
  skip('\r');
  skip('\n');
  ++line_;
  line_start_ = at_;
}

std::string TomlScanner::key_part() {
  if (peek() == '"') return basic_string();
  if (peek() == '\'') return literal_string();
  const std::size_t begin = at_;
  while (is_bare_key(peek())) ++at_;
  if (at_ == begin) {
    refuse("a key is made of letters, digits, _ and -, or stands in quotes");
  }
  return std::string(text_.substr(begin, at_ - begin));
}

char TomlScanner::character_in(char quote) {
  if (at_line_end()) {
    refuse(std::string("a string must end on its line, with ") + quote);
  }
  if (is_control(text_[at_])) {
    refuse("a control character in a string; \"\\u0000\" escapes it");
  }
  return text_[at_++];
}

std::string TomlScanner::basic_string() {
  if (text_.substr(at_, 3) == "\"\"\"") {
    refuse("strings of several lines have no place in a config");
  }
  ++at_;
  std::string value;
  while (!skip('"')) {
    const char c = character_in('"');
    value += c == '\\' ? escaped() : std::string(1, c);
  }
  return value;
}

std::string TomlScanner::literal_string() {
  if (text_.substr(at_, 3) == "'''") {
    refuse("strings of several lines have no place in a config");
  }
  ++at_;
  std::string value;
  while (!skip('\'')) value += character_in('\'');
  return value;
}

// What stands behind a backslash.
std::string TomlScanner::escaped() {
  constexpr std::array<std::pair<char, char>, 7> kEscapes = {{{'b', '\b'},
                                                              {'t', '\t'},
                                                              {'n', '\n'},
                                                              {'f', '\f'},
                                                              {'r', '\r'},
                                                              {'"', '"'},
                                                              {'\\', '\\'}}};
  for (const auto& [name, character] : kEscapes) {
    if (skip(name)) return {character};
  }
  const std::size_t digits = peek() == 'u' ? 4 : peek() == 'U' ? 8 : 0;
  std::uint32_t code = 0;
  if (digits > 0) {
    const std::string_view hex = text_.substr(at_ + 1, digits);
    const auto [end, error] =
        std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
    const auto character = error == std::errc() && end == hex.data() + digits
                               ? base::utf8_of(code)
                               : std::optional<std::string>();
    if (character) {
      at_ += 1 + digits;
      return *character;
    }
  }
  refuse("no escape of TOML; a backslash itself is \\\\, or use single quotes");
}

TomlValue TomlScanner::value() {
  switch (peek()) {
    case '"':
      return {basic_string(), "a string"};
    case '\'':
      return {literal_string(), "a string"};
    case '[':
      refuse("an array, but values are strings, numbers and booleans");
    case '{':
      refuse("a table, but values are strings, numbers and booleans");
    default:
      return bare_value();
  }
}

TomlValue TomlScanner::bare_value() {
  std::size_t end = at_;
  while (end < text_.size() && std::string_view(" \t\r\n#").find(text_[end]) ==
                                   std::string_view::npos) {
    ++end;
  }
  const std::string_view token = text_.substr(at_, end - at_);
  if (token.empty()) refuse("the value is missing");
  try {
    TomlValue value = parse_bare_value(token);
    at_ = end;
    return value;
  } catch (const std::invalid_argument& error) {
    refuse(error.what());
  }
}

}  // namespace polyattn::run
