#include "train/run/toml_section.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/message.h"
#include "train/run/suggest.h"

namespace polyattn::run {

const TomlEntry* SectionKeys::find(std::string_view key) const {
  const auto found =
      std::find_if(section_.entries.begin(), section_.entries.end(),
                   [&](const TomlEntry& entry) { return entry.key == key; });
  return found == section_.entries.end() ? nullptr : &*found;
}

const TomlEntry* SectionKeys::ask(std::string_view key) {
  known_.push_back(key);
  return find(key);
}

const TomlEntry* SectionKeys::require(std::string_view key) {
  const TomlEntry* const entry = ask(key);
  if (entry == nullptr) {
    problems_.add(place_of(key), fmt::format("{} is missing", key));
  }
  return entry;
}

void SectionKeys::refuse_type(const TomlEntry& entry, std::string_view wanted) {
  problems_.add(
      place_text(source_, entry.line, entry.column),
      fmt::format("{} is {}, must be {}", entry.key, entry.value.type, wanted));
}

std::string SectionKeys::place_of(std::string_view key) const {
  const TomlEntry* const entry = find(key);
  return entry == nullptr ? place_text(source_, section_.line, section_.column)
                          : place_text(source_, entry->line, entry->column);
}

std::string SectionKeys::text(std::string_view key) {
  return text_of(ask(key), key);
}

std::string SectionKeys::required_text(std::string_view key) {
  return text_of(require(key), key);
}

std::string SectionKeys::text_of(const TomlEntry* entry, std::string_view key) {
  if (entry == nullptr) return "";
  const auto& value = entry->value.value;
  const auto* const text = value ? std::get_if<std::string>(&*value) : nullptr;
  if (text == nullptr) {
    refuse_type(*entry, "a string");
    return "";
  }
  if (text->empty())
    problems_.add(place_of(key), fmt::format("{} is empty", key));
  return *text;
}

std::int64_t SectionKeys::integer(std::string_view key, std::int64_t fallback,
                                  const Range& range) {
  const TomlEntry* const entry = ask(key);
  if (entry == nullptr) return fallback;
  const auto& value = entry->value.value;
  const auto* const number =
      value ? std::get_if<std::int64_t>(&*value) : nullptr;
  if (number == nullptr) {
    refuse_type(*entry, "an integer");
    return fallback;
  }
  if (range.contains(static_cast<double>(*number))) return *number;
  problems_.add(place_of(key), fmt::format("{} is {}, must be {}", key, *number,
                                           range.to_string()));
  return fallback;
}

std::vector<TomlString> SectionKeys::strings(std::string_view key) {
  const TomlEntry* const entry = ask(key);
  if (entry == nullptr) return {};
  if (entry->value.strings) return *entry->value.strings;
  refuse_type(*entry, "a list of strings");
  return {};
}

std::vector<TomlString> SectionKeys::required_strings(std::string_view key) {
  auto list = strings(key);
  const TomlEntry* const entry = find(key);
  if (entry == nullptr) {
    problems_.add(place_of(key), fmt::format("{} is missing", key));
  } else if (entry->value.strings && list.empty()) {
    problems_.add(place_of(key), fmt::format("{} is empty", key));
  }
  return list;
}

void SectionKeys::finish() {
  for (const TomlEntry& entry : section_.entries) {
    if (std::find(known_.begin(), known_.end(), entry.key) != known_.end()) {
      continue;
    }
    if (problems_.enough()) {
      problems_.add("", "");
      continue;
    }
    const auto near = nearest(entry.key, known_);
    problems_.add(place_text(source_, entry.line, entry.column),
                  fmt::format("unknown key {}: {}", base::in_quotes(entry.key),
                              near ? fmt::format("did you mean {}?", *near)
                                   : fmt::format("there are {}",
                                                 fmt::join(known_, ", "))));
  }
}

}  // namespace polyattn::run
