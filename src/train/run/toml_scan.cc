#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "base/utf8.h"
#include "train/run/toml_reader.h"

namespace polyattn::run {
namespace {

// A key of a config has two parts. toml++ 3.3 nests a table for each, and
// destroys them by recursion.
constexpr int kMaxDots = 16;

constexpr const char* kKeyRule =
    "a key is made of letters, digits, _ and -, or stands in quotes";

bool is_control(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
}

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

// One line, without its end.
class LineScan {
 public:
  LineScan(std::string_view line, int number) : line_(line), number_(number) {}

  void check() {
    check_header();
    for (; at_ < line_.size() && line_[at_] != '#'; ++at_) {
      const char c = line_[at_];
      if (c == '"' || c == '\'') {
        check_before_quote();
        skip_string(c);
      } else if (is_control(c)) {
        refuse("a control character");
      } else if (!is_ascii(c)) {
        refuse("letters outside of ASCII must stand in quotes");
      } else if (c == '.' && ++dots_ > kMaxDots) {
        refuse("too many dots in a line: a key is section.key");
      }
    }
    for (; at_ < line_.size(); ++at_) {
      if (is_control(line_[at_])) refuse("a control character in a comment");
    }
  }

 private:
  // A value that goes on with a quote, as 0'a': toml++ 3.3 looks at what
  // follows as at a part of the value, and has no answer for letters like
  // U+00E9.
  void check_before_quote() {
    std::string_view before = line_.substr(0, at_);
    if (before.ends_with('.')) {
      before.remove_suffix(1);
      if (before.empty() || !is_ascii(before.back()) ||
          std::isdigit(before.back()) == 0)
        return;
    }
    if (before.empty()) return;
    const char c = before.back();
    if (is_ascii(c) && (std::isalnum(c) != 0 || c == '_' || c == '+' ||
                        c == '-' || c == ':')) {
      refuse("a quote within a value or a key");
    }
  }

  // toml++ takes for granted that "[" is followed by a key.
  void check_header() {
    std::size_t key = line_.find_first_not_of(" \t");
    if (key == std::string_view::npos || line_[key] != '[') return;
    ++key;
    if (line_.substr(key, 1) == "[") ++key;
    key = std::min(line_.find_first_not_of(" \t", key), line_.size());
    const char c = key < line_.size() ? line_[key] : '\0';
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 ||
        (c != '\0' &&
         std::string_view("_-\"'").find(c) != std::string_view::npos)) {
      return;
    }
    at_ = key;
    refuse(kKeyRule);
  }

  // To its closing quote.
  void skip_string(char quote) {
    if (line_.substr(at_, 3) == std::string(3, quote)) {
      refuse("strings of several lines have no place in a config");
    }
    for (++at_; at_ < line_.size() && line_[at_] != quote; ++at_) {
      if (is_control(line_[at_])) {
        refuse("a control character in a string; \"\\u0000\" escapes it");
      }
      if (line_[at_] == '\\' && quote == '"') ++at_;
    }
    at_ = std::min(at_, line_.size());
    if (at_ == line_.size()) {
      refuse(fmt::format("a string must end on its line, with {}", quote));
    }
  }

  [[noreturn]] void refuse(const std::string& message) const {
    const auto before = line_.substr(0, at_);
    const auto characters =
        std::count_if(before.begin(), before.end(), [](char c) {
          return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
        });
    throw TomlError(message, number_, static_cast<int>(characters) + 1);
  }

  std::string_view line_;
  int number_;
  std::size_t at_ = 0;
  int dots_ = 0;
};

// `good` is the text before the place.
[[noreturn]] void refuse_after(std::string_view good, const char* message) {
  const auto line = std::count(good.begin(), good.end(), '\n') + 1;
  const std::size_t column = good.size() - (good.rfind('\n') + 1) + 1;
  throw TomlError(message, static_cast<int>(line), static_cast<int>(column));
}

void check_bytes(std::string_view text) {
  if (text.size() > kMaxTomlBytes) {
    throw TomlError(fmt::format("{} bytes are more than the {} that a config "
                                "may have; is this the right file?",
                                text.size(), kMaxTomlBytes),
                    0, 0);
  }
  const std::size_t zero = text.find('\0');
  if (zero != std::string_view::npos) {
    refuse_after(text.substr(0, zero), "a byte of value 0: this is no text");
  }
  const std::size_t good = base::utf8_prefix(text);
  if (good < text.size()) {
    refuse_after(text.substr(0, good),
                 "from here on it is no UTF-8: is this the right file?");
  }
}

}  // namespace

void scan_toml(std::string_view text) {
  check_bytes(text);
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    LineScan(line, number).check();
  }
}

}  // namespace polyattn::run
