#include "train/run/toml_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/message.h"
#include "base/utf8.h"
#include "train/run/toml_scanner.h"

namespace polyattn::run {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

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

class TomlReader {
 public:
  explicit TomlReader(std::string_view text) : scanner_(text) {}

  std::vector<TomlSection> read() {
    while (!scanner_.at_end()) {
      scanner_.skip_blanks();
      if (scanner_.skip('[')) {
        read_header();
      } else if (!scanner_.at_line_end() && scanner_.peek() != '#') {
        read_entry();
      }
      scanner_.finish_line();
    }
    return std::move(sections_);
  }

 private:
  // "a.b" in one piece, and where its first part ends.
  struct Key {
    std::string text;
    std::size_t first_part = 0;
    int line = 0;
    int column = 0;
  };

  Key read_key();
  void read_header();
  void read_entry();
  TomlSection& section_of(Key& key);

  TomlScanner scanner_;
  std::vector<TomlSection> sections_ = std::vector<TomlSection>(1);
  // Indices into sections_.
  std::map<std::string, std::size_t> section_numbers_;
  std::size_t current_ = 0;
  // Lines of the keys, by the number of their section.
  std::map<std::pair<std::size_t, std::string>, int> key_lines_;
};

TomlReader::Key TomlReader::read_key() {
  scanner_.skip_blanks();
  Key key;
  key.line = scanner_.line();
  key.column = scanner_.column();
  key.text = scanner_.key_part();
  key.first_part = key.text.size();
  scanner_.skip_blanks();
  while (scanner_.skip('.')) {
    scanner_.skip_blanks();
    key.text += '.' + scanner_.key_part();
    scanner_.skip_blanks();
  }
  return key;
}

void TomlReader::read_header() {
  if (scanner_.peek() == '[') {
    scanner_.refuse("lists of tables have no place in a config: write [name]");
  }
  const Key key = read_key();
  if (!scanner_.skip(']')) scanner_.refuse("] is missing");
  const auto [found, is_new] =
      section_numbers_.emplace(key.text, sections_.size());
  if (!is_new) {
    throw TomlError(
        fmt::format("section {} is there already, since line {}",
                    base::in_quotes(key.text), sections_[found->second].line),
        key.line, key.column);
  }
  current_ = sections_.size();
  sections_.push_back({key.text, key.line, key.column, {}});
}

// The current one, unless the key names one before there is any.
TomlSection& TomlReader::section_of(Key& key) {
  if (current_ != 0 || key.first_part == key.text.size()) {
    return sections_[current_];
  }
  const std::string name = key.text.substr(0, key.first_part);
  key.text.erase(0, key.first_part + 1);
  const auto [found, is_new] = section_numbers_.emplace(name, sections_.size());
  if (is_new) sections_.push_back({name, key.line, key.column, {}});
  return sections_[found->second];
}

void TomlReader::read_entry() {
  Key key = read_key();
  if (!scanner_.skip('=')) scanner_.refuse("= is missing");
  scanner_.skip_blanks();
  TomlValue value = scanner_.value();
  TomlSection& section = section_of(key);
  const auto number = static_cast<std::size_t>(&section - sections_.data());
  const auto [found, is_new] =
      key_lines_.emplace(std::pair(number, key.text), key.line);
  if (!is_new) {
    throw TomlError(fmt::format("key {} is there already, in line {}",
                                base::in_quotes(key.text), found->second),
                    key.line, key.column);
  }
  section.entries.push_back(
      {std::move(key.text), std::move(value), key.line, key.column});
}

}  // namespace

std::vector<TomlSection> read_toml(std::string_view text) {
  check_bytes(text);
  if (text.starts_with(kByteOrderMark)) {
    text.remove_prefix(kByteOrderMark.size());
  }
  return TomlReader(text).read();
}

std::optional<TomlValue> read_toml_value(std::string_view text) {
  try {
    check_bytes(text);
    TomlScanner scanner(text);
    TomlValue value = scanner.value();
    scanner.finish_line();
    if (!scanner.at_end()) return std::nullopt;
    return value;
  } catch (const TomlError&) {
    return std::nullopt;
  }
}

}  // namespace polyattn::run
