// TOML 1.0 as far as a config needs it: sections of keys with plain values.
//
//   # comment
//   [section]
//   key = 1                  integers, also 0xff, 0o17, 0b11 and 1_000
//   key = 1.5e-3             numbers, also inf and nan
//   key = true
//   key = "text", 'text'     the first with escapes
//   section.key = 1          before the first section
//
// What else TOML has (arrays, tables in tables, strings of several lines) is
// refused; dates are read, so that a message can name them.
//
// It is a reader of our own, because toml++ 3.3 is not safe with files that
// somebody else wrote: dotted keys overflow its stack, and its parser rests on
// assumptions ("[" is followed by a key; no letter is outside of ASCII) that
// such files break. The tests hold it against toml++ on what both know.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "train/run/fields.h"

namespace polyattn::run {

struct TomlValue {
  // Nothing for a date or time.
  std::optional<Value> value;
  // "an integer", ...: of a value too.
  std::string_view type;
};

struct TomlEntry {
  std::string key;
  TomlValue value;
  int line = 0;
  int column = 0;  // in characters, from 1
};

struct TomlSection {
  std::string name;  // empty: what stands outside of sections
  int line = 0;
  int column = 0;
  std::vector<TomlEntry> entries;
};

// what() is one line of ASCII, without a position.
class TomlError : public std::runtime_error {
 public:
  TomlError(const std::string& message, int line, int column)
      : std::runtime_error(message), line_(line), column_(column) {}

  int line() const { return line_; }
  int column() const { return column_; }

 private:
  int line_;
  int column_;
};

inline constexpr std::size_t kMaxTomlBytes = 1 << 20;

// In the order of the text; the first is what stands outside of sections.
// Throws TomlError; line() is 0 if there is no one place.
std::vector<TomlSection> read_toml(std::string_view text);

// Nothing if the text is not one value.
std::optional<TomlValue> read_toml_value(std::string_view text);

}  // namespace polyattn::run
