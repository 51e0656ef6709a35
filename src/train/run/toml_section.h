// Reads the keys of a section that is not one of a config.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "train/run/problems.h"
#include "train/run/toml_reader.h"

namespace polyattn::run {

// What is wrong goes to the problems; the value is then empty, or the fallback.
class SectionKeys {
 public:
  SectionKeys(const TomlSection& section, std::string_view source,
              Problems& problems)
      : section_(section), source_(source), problems_(problems) {}

  std::string text(std::string_view key);           // not empty, if it is there
  std::string required_text(std::string_view key);  // not empty
  std::int64_t integer(std::string_view key, std::int64_t fallback,
                       const Range& range);
  std::vector<TomlString> strings(std::string_view key);
  std::vector<TomlString> required_strings(std::string_view key);

  // Refuses the keys that nobody asked for.
  void finish();

  // Of the value, or else of the section.
  std::string place_of(std::string_view key) const;

 private:
  const TomlEntry* find(std::string_view key) const;
  const TomlEntry* ask(std::string_view key);
  const TomlEntry* require(std::string_view key);
  std::string text_of(const TomlEntry* entry, std::string_view key);
  void refuse_type(const TomlEntry& entry, std::string_view wanted);

  const TomlSection& section_;
  std::string source_;
  Problems& problems_;
  std::vector<std::string_view> known_;
};

}  // namespace polyattn::run
