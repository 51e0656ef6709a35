// parse_config(): what a file and --set say, laid over the defaults.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/message.h"
#include "train/run/config.h"
#include "train/run/fields.h"
#include "train/run/models.h"
#include "train/run/problems.h"
#include "train/run/suggest.h"
#include "train/run/toml_reader.h"

namespace polyattn::run {
namespace {

using base::in_quotes;

// A known key is printed as it is, others are somebody else's text.
std::string full_name(std::string_view section, std::string_view key) {
  if (const Field* field = find_field(section, key)) return field->name();
  return in_quotes(section.empty() ? std::string(key)
                                   : fmt::format("{}.{}", section, key));
}

// The value as the field has it; nothing if it is of another type.
std::optional<Value> converted(const Value& value, const Value& like) {
  if (value.index() == like.index()) return value;
  if (std::holds_alternative<double>(like)) {
    if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      return static_cast<double>(*integer);
    }
  }
  return std::nullopt;
}

// Whether the value is of the right type.
bool assign(Config& config, const Field& field, const TomlValue& value,
            const std::string& where, Problems& problems) {
  const Value like = field.get(config);
  const auto fitting =
      value.value ? converted(*value.value, like) : std::optional<Value>();
  if (fitting) {
    field.set(config, *fitting);
    return true;
  }
  std::string shown;
  if (value.value) {
    const auto* text = std::get_if<std::string>(&*value.value);
    shown =
        fmt::format(" {}", text ? in_quotes(*text) : value_text(*value.value));
  }
  problems.add(where, fmt::format("{} is {}{}, must be {}", field.name(),
                                  value.type, shown, type_name(like)));
  return false;
}

// Lays what a file and settings say over the defaults, and remembers from where
// each value is.
class Overlay {
 public:
  Overlay(std::string_view source, const std::vector<Setting>& settings,
          Config (*defaults)(std::string_view task, std::string_view model))
      : source_(source), settings_(settings), defaults_(defaults) {}

  Config apply(std::string_view text);

 private:
  // The string that a key is given, and from where; empty: it is not.
  struct Origin {
    std::string value, where;
  };

  std::vector<TomlSection> read(std::string_view text);
  Origin origin_of(const Field& field,
                   const std::vector<TomlSection>& sections) const;
  void start_from_defaults(const std::vector<TomlSection>& sections);
  void apply_section(const TomlSection& section);

  std::string source_;
  const std::vector<Setting>& settings_;
  Config (*defaults_)(std::string_view task, std::string_view model);
  Config config_;
  Problems problems_;
  std::map<const Field*, std::string> origins_;
};

std::vector<TomlSection> Overlay::read(std::string_view text) {
  std::vector<TomlSection> sections;
  try {
    sections = read_toml(text);
  } catch (const TomlError& error) {
    problems_.add(place_text(source_, error.line(), error.column()),
                  error.what());
  }
  problems_.check();
  return sections;
}

// A string as it is, anything else as TOML has it or else as a string.
TomlValue setting_value(const Setting& setting, bool wants_string) {
  auto value = read_toml_value(setting.value);
  const bool is_string = value && value->value &&
                         std::holds_alternative<std::string>(*value->value);
  if (value && (is_string || !wants_string)) return *value;
  return {setting.value, "a string"};
}

std::pair<std::string_view, std::string_view> split_key(std::string_view key) {
  const std::size_t dot = key.find('.');
  if (dot == std::string_view::npos) return {"", key};
  return {key.substr(0, dot), key.substr(dot + 1)};
}

Overlay::Origin Overlay::origin_of(
    const Field& field, const std::vector<TomlSection>& sections) const {
  Origin origin;
  const auto take = [&](const TomlValue& value, std::string from) {
    // Values of other types are refused later, with the rest.
    if (!value.value || !std::holds_alternative<std::string>(*value.value)) {
      return;
    }
    origin = {std::get<std::string>(*value.value), std::move(from)};
  };
  for (const TomlSection& section : sections) {
    if (section.name != field.section) continue;
    for (const TomlEntry& entry : section.entries) {
      if (entry.key != field.key) continue;
      take(entry.value, place_text(source_, entry.line, entry.column));
    }
  }
  for (const Setting& setting : settings_) {
    if (setting.key != field.name()) continue;
    take(setting_value(setting, /*wants_string=*/true), "--set");
  }
  return origin;
}

// An unknown model is refused later, with the rest.
void Overlay::start_from_defaults(const std::vector<TomlSection>& sections) {
  Origin task = origin_of(*find_field("task", "name"), sections);
  if (task.where.empty()) task.value = config_.task.name;
  const TaskEntry* const entry = find_task(task.value);
  if (entry == nullptr) {
    problems_.add(task.where,
                  fmt::format("unknown task {}: {}", in_quotes(task.value),
                              advice_on_task(task.value)));
    problems_.check();
  }
  const Origin model = origin_of(*find_field("model", "name"), sections);
  const ModelEntry* const known = find_model(model.value);
  const bool fits = known != nullptr && (known->tasks & entry->kind) != 0;
  config_ = defaults_(task.value, fits ? model.value : "");
}

void Overlay::apply_section(const TomlSection& section) {
  const auto sections = section_names();
  const bool known = std::find(sections.begin(), sections.end(),
                               section.name) != sections.end();
  if (!known && !section.name.empty()) {
    problems_.add(
        place_text(source_, section.line, section.column),
        problems_.enough()
            ? ""
            : fmt::format("unknown section {}: {}", in_quotes(section.name),
                          advice_on_section(section.name)));
    return;
  }
  for (const TomlEntry& entry : section.entries) {
    if (is_retired(section.name, entry.key)) continue;
    const std::string where = place_text(source_, entry.line, entry.column);
    if (const Field* field = find_field(section.name, entry.key)) {
      if (assign(config_, *field, entry.value, where, problems_)) {
        origins_[field] = where;
      }
    } else if (problems_.enough()) {
      problems_.add("", "");
    } else if (std::find(sections.begin(), sections.end(), entry.key) !=
                   sections.end() &&
               !known) {
      problems_.add(where, fmt::format("{} is {}, must be a section: [{}]",
                                       entry.key, entry.value.type, entry.key));
    } else {
      problems_.add(where, fmt::format("unknown key {}: {}",
                                       full_name(section.name, entry.key),
                                       advice_on_key(section.name, entry.key)));
    }
  }
}

Config Overlay::apply(std::string_view text) {
  const std::vector<TomlSection> sections = read(text);
  start_from_defaults(sections);
  for (const TomlSection& section : sections) apply_section(section);
  for (const Setting& setting : settings_) {
    if (const Field* field =
            apply_setting(config_, setting, "--set", problems_)) {
      origins_[field] = "--set";
    }
  }
  // Values that were refused leave defaults behind, which may not agree with
  // the rest: so no more is said.
  problems_.check();
  for (const BadValue& bad : find_bad_values(config_)) {
    const auto origin = origins_.find(bad.field);
    problems_.add(origin == origins_.end() ? source_ : origin->second,
                  bad.message);
  }
  problems_.check();
  return config_;
}

}  // namespace

const Field* apply_setting(Config& config, const Setting& setting,
                           const std::string& where, Problems& problems) {
  const auto [section, key] = split_key(setting.key);
  const Field* const field = find_field(section, key);
  if (field == nullptr) {
    problems.add(where,
                 fmt::format("unknown key {}: {}", in_quotes(setting.key),
                             advice_on_key(section, key)));
    return nullptr;
  }
  const bool wants_string =
      std::holds_alternative<std::string>(field->get(config));
  return assign(config, *field, setting_value(setting, wants_string), where,
                problems)
             ? field
             : nullptr;
}

Config parse_config(std::string_view text, std::string_view source,
                    const std::vector<Setting>& settings) {
  return Overlay(source, settings, default_config).apply(text);
}

Config parse_run_config(std::string_view text, std::string_view source,
                        const std::vector<Setting>& settings) {
  return Overlay(source, settings,
                 [](std::string_view task, std::string_view model) {
                   Config config = default_config(task, model);
                   config.model.start = "plain";
                   return config;
                 })
      .apply(text);
}

}  // namespace polyattn::run
