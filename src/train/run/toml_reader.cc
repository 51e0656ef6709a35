#include "train/run/toml_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace polyattn::run {
namespace {

[[noreturn]] void break_off() { throw std::logic_error("toml++"); }

}  // namespace
}  // namespace polyattn::run

// The assertions of toml++ become exceptions. With NDEBUG they would be
// promises to the compiler, which a hostile text breaks.
#undef NDEBUG
#define TOML_ASSERT(expression)                      \
  do {                                               \
    if (!(expression)) ::polyattn::run::break_off(); \
  } while (false)
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 16
#include <toml++/toml.h>

namespace polyattn::run {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// What toml++ says of a word that was meant as a string.
constexpr std::array<std::string_view, 5> kOfWords = {
    "could not determine value type", "expected 'true'", "expected 'false'",
    "expected 'inf'", "expected 'nan'"};

// "Error while parsing boolean: expected ..." is cut to what was expected.
std::string plain_message(std::string_view description) {
  constexpr std::string_view kStart = "Error while parsing ";
  std::string message(description);
  const std::size_t colon = description.find(": ");
  if (description.starts_with(kStart) && colon != std::string_view::npos) {
    message = description.substr(colon + 2);
    if (message == "encountered end-of-file") {
      message =
          fmt::format("the text ends within this {}",
                      description.substr(kStart.size(), colon - kStart.size()));
    }
  }
  for (const std::string_view start : kOfWords) {
    if (message.starts_with(start)) message += "; strings need quotes";
  }
  std::replace_if(
      message.begin(), message.end(), [](char c) { return c < ' ' || c > '~'; },
      '?');
  return message;
}

toml::table parsed(std::string_view text) {
  scan_toml(text);
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    const toml::source_position place = error.source().begin;
    throw TomlError(plain_message(error.description()),
                    static_cast<int>(place.line),
                    static_cast<int>(place.column));
  } catch (const std::logic_error&) {
    throw TomlError("this is no TOML", 0, 0);
  }
}

// Nothing if the array holds something else too.
std::optional<std::vector<TomlString>> strings_of(const toml::array& array) {
  std::vector<TomlString> strings;
  for (const toml::node& node : array) {
    const auto* const string = node.as_string();
    if (string == nullptr) return std::nullopt;
    const toml::source_position begin = node.source().begin;
    strings.push_back({string->get(), static_cast<int>(begin.line),
                       static_cast<int>(begin.column)});
  }
  return strings;
}

TomlValue value_of(const toml::node& node) {
  std::optional<Value> value;
  if (const auto* flag = node.as_boolean()) value = flag->get();
  if (const auto* integer = node.as_integer()) value = integer->get();
  if (const auto* number = node.as_floating_point()) value = number->get();
  if (const auto* string = node.as_string()) value = string->get();
  if (value) return {value, type_name(*value)};
  if (const auto* array = node.as_array()) {
    return {std::nullopt, "an array", strings_of(*array)};
  }
  return {std::nullopt, node.is_table() ? "a table" : "a date or time"};
}

// The tables of [[name]]; nullptr for any other node.
const toml::array* tables_of(const toml::node& node) {
  const toml::array* const array = node.as_array();
  if (array == nullptr || array->empty() || !array->is_array_of_tables()) {
    return nullptr;
  }
  const toml::table* const first = array->front().as_table();
  return first->is_inline() ? nullptr : array;
}

// Adds `section` for the table, and one for each table within it.
void add_sections(const toml::table& table, TomlTables tables,
                  TomlSection section, std::vector<TomlSection>& sections) {
  const std::string prefix = section.name.empty() ? "" : section.name + ".";
  for (const auto& [key, node] : table) {
    const toml::source_position begin = key.source().begin;
    const auto line = static_cast<int>(begin.line);
    const auto column = static_cast<int>(begin.column);
    const std::string name(key.str());
    const toml::array* const repeated =
        tables == TomlTables::kSections ? tables_of(node) : nullptr;
    if (repeated != nullptr) {
      for (const toml::node& one : *repeated) {
        const toml::source_position start = one.source().begin;
        add_sections(*one.as_table(), tables,
                     {prefix + name,
                      static_cast<int>(start.line),
                      static_cast<int>(start.column),
                      {}},
                     sections);
      }
      continue;
    }
    const toml::table* const inner = node.as_table();
    if (inner == nullptr || inner->is_inline()) {
      section.entries.push_back({name, value_of(node), line, column});
      continue;
    }
    // [outer.inner] begins with its first part.
    const int first = line == section.line ? section.column : column;
    add_sections(*inner, tables, {prefix + name, line, first, {}}, sections);
  }
  sections.push_back(std::move(section));
}

bool is_before(const auto& a, const auto& b) {
  return std::tie(a.line, a.column) < std::tie(b.line, b.column);
}

}  // namespace

std::vector<TomlSection> read_toml(std::string_view text, TomlTables tables) {
  if (text.starts_with(kByteOrderMark)) {
    text.remove_prefix(kByteOrderMark.size());
  }
  std::vector<TomlSection> sections;
  add_sections(parsed(text), tables, {}, sections);
  // toml++ has them in the order of their names.
  std::stable_sort(
      sections.begin(), sections.end(),
      [](const auto& a, const auto& b) { return is_before(a, b); });
  for (TomlSection& section : sections) {
    std::sort(section.entries.begin(), section.entries.end(),
              [](const auto& a, const auto& b) { return is_before(a, b); });
  }
  return sections;
}

std::optional<TomlValue> read_toml_value(std::string_view text) {
  if (text.find('\n') != std::string_view::npos) return std::nullopt;
  try {
    const toml::table table = parsed("value = " + std::string(text));
    const toml::node& node = *table.get("value");
    if (node.is_array() || node.is_table()) return std::nullopt;
    return value_of(node);
  } catch (const TomlError&) {
    return std::nullopt;
  }
}

}  // namespace polyattn::run
