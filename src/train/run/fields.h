// The one list of keys of a config. Parsing, checking, printing and describing
// all follow from it.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "train/run/config.h"
#include "train/run/tasks.h"

namespace polyattn::run {

using Value = std::variant<bool, std::int64_t, double, std::string>;
using Slot = std::variant<bool*, std::int64_t*, double*, std::string*>;

// What a number may be. The default is any.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool without_low = false;  // low itself is outside
  bool without_high = false;

  bool contains(double value) const;
  // "at least 1", "from 1 to 8", "from 0 to below 1"; empty for any.
  std::string to_string() const;
};

struct Field {
  std::string_view section;
  std::string_view key;
  Slot (*slot)(Config&);
  std::string_view meaning;
  Range range = {};                                // numbers
  std::span<const std::string_view> choices = {};  // strings; empty: any
  unsigned tasks = kAllTasks;                      // that heed it

  std::string name() const;  // section.key
  Value get(const Config& config) const;
  void set(Config& config, const Value& value) const;  // of the same type
};

std::span<const Field> fields();

// nullptr if there is none.
const Field* find_field(std::string_view section, std::string_view key);

// A key that older versions wrote, and that is read over: model.fused, which
// chose plain torch ops to measure against. Benchmarks have these to
// themselves.
bool is_retired(std::string_view section, std::string_view key);

// Why all runs of a comparison have the same value of a key, neither searched
// nor varied; nullptr if they may differ.
const char* why_shared(std::string_view name);

// In the order of the file.
std::span<const std::string_view> section_names();

// "an integer", for messages.
std::string_view type_name(const Value& value);

// As TOML writes it.
std::string value_text(const Value& value);

// "none, layer, rms"; empty if any string will do.
std::string choices_text(const Field& field);

}  // namespace polyattn::run
