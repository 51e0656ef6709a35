// TOML as far as a config and an experiment need it: sections of keys with
// plain values or lists of strings.
//
// toml++ 3.3 parses it. That is not safe with every file that somebody else
// wrote (dotted keys overflow its stack, and letters outside of ASCII break
// assumptions of its parser), so scan_toml() refuses such texts before.
#pragma once

#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "train/run/fields.h"

namespace polyattn::run {

struct TomlString {
  std::string text;
  int line = 0;
  int column = 0;
};

struct TomlValue {
  // Nothing for what no config has: a date or time, an array, a table.
  std::optional<Value> value;
  // "an integer", ...: of a value too.
  std::string_view type;
  // Of an array of nothing but strings.
  std::optional<std::vector<TomlString>> strings = {};
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

// In toml_scan.cc. Throws TomlError for texts that are too large, are no UTF-8,
// have keys of too many parts, strings of several lines, or anything outside of
// ASCII but for strings and comments.
void scan_toml(std::string_view text);

// What [[name]] is: a value, an array, as it is to a config; or a section of
// that name for each.
enum class TomlTables { kValue, kSections };

// In the order of the text; the first is what stands outside of sections. A
// section within another has the name "outer.inner". Throws TomlError; line()
// is 0 if there is no one place.
std::vector<TomlSection> read_toml(std::string_view text,
                                   TomlTables tables = TomlTables::kValue);

// The text of a file. Throws ConfigError.
std::string read_toml_file(const std::filesystem::path& path);

// Nothing if the text is not one value of a config, or a date.
std::optional<TomlValue> read_toml_value(std::string_view text);

}  // namespace polyattn::run
