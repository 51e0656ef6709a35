#include "train/run/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>

#include "base/message.h"
#include "polyattn/activation.h"
#include "train/run/models.h"
#include "train/run/suggest.h"
#include "train/run/toml_section.h"

namespace polyattn::run {
namespace {

constexpr Range kSeedCount = {.low = 1, .high = 1000};
constexpr Range kArmCount = {.low = 1, .high = 1e6};
constexpr std::size_t kLongestComparisonName = 60;

// What the file says otherwise, or the command.
constexpr std::array<std::string_view, 5> kNoSettings = {
    "task.name", "model.name", "model.activation", "train.seed",
    "train.threads"};

bool fits_a_folder(const std::string& name) {
  return name.size() <= kLongestComparisonName && !name.starts_with('.') &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return (c < 0x80 && std::isalnum(c) != 0) || c == '-' || c == '_' ||
                  c == '.';
         });
}

// Settings laid over the defaults of a task, each with its place.
class PlacedSettings {
 public:
  PlacedSettings(Config base, std::string_view source, Problems& problems)
      : config_(std::move(base)), source_(source), problems_(problems) {}

  void apply(const std::vector<TomlString>& settings);
  // `whole` is the place of what nobody set.
  void check(const std::string& whole);
  const Config& config() const { return config_; }

 private:
  Config config_;
  std::string source_;
  Problems& problems_;
  std::map<const Field*, std::string> origins_;
};

void PlacedSettings::apply(const std::vector<TomlString>& settings) {
  for (const auto& [text, line, column] : settings) {
    const std::string where = place_text(source_, line, column);
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      problems_.add(
          where, fmt::format("{} is not KEY=VALUE, for example train.lr=3e-4",
                             base::in_quotes(text)));
      continue;
    }
    const Setting setting = parse_setting(text);
    if (std::find(kNoSettings.begin(), kNoSettings.end(), setting.key) !=
        kNoSettings.end()) {
      problems_.add(
          where, fmt::format("{} is no setting of a comparison", setting.key));
      continue;
    }
    const Field* const field =
        apply_setting(config_, setting, where, problems_);
    if (field != nullptr) origins_[field] = where;
  }
}

void PlacedSettings::check(const std::string& whole) {
  for (const BadValue& bad : find_bad_values(config_)) {
    const auto origin = origins_.find(bad.field);
    problems_.add(origin == origins_.end() ? whole : origin->second,
                  bad.message);
  }
}

class ExperimentParser {
 public:
  ExperimentParser(std::string_view source, ExperimentSize size)
      : source_(source), size_(size) {}

  Experiment parse(std::string_view text);

 private:
  // What --quick changes in every comparison.
  struct Quick {
    std::vector<TomlString> settings;
    std::int64_t seeds = 1;
    std::int64_t activations = kMostArms;
  };
  static constexpr std::int64_t kMostArms = 1'000'000;

  std::vector<TomlSection> read(std::string_view text);
  void read_sections(const std::vector<TomlSection>& sections);
  void read_quick(const TomlSection& section);
  void add_comparison(const TomlSection& section);
  std::optional<Config> defaults_of(SectionKeys& keys);
  Config base_of(SectionKeys& keys, Config defaults);
  void add_arms(const std::vector<TomlString>& texts, const std::string& where,
                ExperimentComparison& comparison);
  void check_name(const std::string& name, const std::string& where);
  bool quick() const { return size_ == ExperimentSize::kQuick; }

  std::string source_;
  ExperimentSize size_;
  Problems problems_;
  Quick quick_;
  Experiment experiment_;
};

std::vector<TomlSection> ExperimentParser::read(std::string_view text) {
  std::vector<TomlSection> sections;
  try {
    sections = read_toml(text, TomlTables::kSections);
  } catch (const TomlError& error) {
    problems_.add(place_text(source_, error.line(), error.column()),
                  error.what());
  }
  problems_.check("experiment");
  return sections;
}

void ExperimentParser::read_quick(const TomlSection& section) {
  SectionKeys keys(section, source_, problems_);
  quick_.settings = keys.strings("settings");
  quick_.seeds = keys.integer("seeds", 1, kSeedCount);
  quick_.activations = keys.integer("activations", kMostArms, kArmCount);
  keys.finish();
}

void ExperimentParser::check_name(const std::string& name,
                                  const std::string& where) {
  if (name.empty()) return;  // said already
  if (!fits_a_folder(name)) {
    problems_.add(where, fmt::format("name is {}, must be of letters, digits, "
                                     "- and _",
                                     base::in_quotes(name)));
  }
  const auto& all = experiment_.comparisons;
  if (std::any_of(all.begin(), all.end(),
                  [&](const auto& other) { return other.name == name; })) {
    problems_.add(where, fmt::format("there are two comparisons {}",
                                     base::in_quotes(name)));
  }
}

// Of the task and the model; nothing if there is no such task or model.
std::optional<Config> ExperimentParser::defaults_of(SectionKeys& keys) {
  const std::string task = keys.required_text("task");
  const std::string model = keys.text("model");
  const TaskEntry* const entry = find_task(task);
  if (entry == nullptr) {
    if (!task.empty()) {
      problems_.add(keys.place_of("task"),
                    fmt::format("unknown task {}: {}", base::in_quotes(task),
                                advice_on_task(task)));
    }
    return std::nullopt;
  }
  const ModelEntry* const known = find_model(model);
  if (!model.empty() &&
      (known == nullptr || (known->tasks & entry->kind) == 0)) {
    problems_.add(keys.place_of("model"),
                  fmt::format("unknown model {}: {}", base::in_quotes(model),
                              advice_on_model(model, *entry)));
    return std::nullopt;
  }
  return default_config(task, model);
}

// The defaults, changed by the settings.
Config ExperimentParser::base_of(SectionKeys& keys, Config defaults) {
  PlacedSettings settings(std::move(defaults), source_, problems_);
  settings.apply(keys.strings("settings"));
  const auto of_quick = keys.strings("quick");
  if (quick()) {
    settings.apply(quick_.settings);
    settings.apply(of_quick);
  }
  settings.check(keys.place_of("settings"));
  return settings.config();
}

void ExperimentParser::add_arms(const std::vector<TomlString>& texts,
                                const std::string& where,
                                ExperimentComparison& comparison) {
  const std::size_t before = problems_.count();
  std::vector<std::string> places;
  for (const auto& [text, line, column] : texts) {
    places.push_back(place_text(source_, line, column));
    try {
      comparison.arms.push_back(
          parse_arm(text, comparison.base, places.back(), problems_));
    } catch (const FormulaError& error) {
      const std::string what = error.what();
      problems_.add(places.back(),
                    fmt::format("{}: {}", base::in_quotes(text),
                                what.substr(0, what.find('\n'))));
    }
  }
  if (problems_.count() > before) return;
  find_repeated_arms(comparison.arms, comparison.base, where, problems_);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Config config = arm_config(comparison.base, comparison.arms[i]);
    for (const BadValue& bad : find_bad_values(config)) {
      problems_.add(places[i], bad.message);
    }
  }
  if (!quick()) return;
  const auto most = static_cast<std::size_t>(quick_.activations);
  if (comparison.arms.size() > most) comparison.arms.resize(most);
}

void ExperimentParser::add_comparison(const TomlSection& section) {
  SectionKeys keys(section, source_, problems_);
  ExperimentComparison comparison;
  comparison.name = keys.required_text("name");
  check_name(comparison.name, keys.place_of("name"));
  std::optional<Config> defaults = defaults_of(keys);
  const auto activations = keys.required_strings("activations");
  comparison.seeds = static_cast<int>(keys.integer("seeds", 3, kSeedCount));
  comparison.grid_seeds =
      static_cast<int>(keys.integer("grid_seeds", 1, kSeedCount));
  if (quick()) {
    comparison.seeds = static_cast<int>(quick_.seeds);
    comparison.grid_seeds = 1;
  }
  std::vector<std::string> grid;
  for (const TomlString& axis : keys.strings("grid")) grid.push_back(axis.text);
  if (!defaults) {
    keys.strings("settings");
    keys.strings("quick");
    return keys.finish();
  }
  const std::size_t before = problems_.count();
  comparison.base = base_of(keys, *std::move(defaults));
  keys.finish();
  // What does not hold for the config does not hold for what is made of it.
  if (problems_.count() == before) {
    add_arms(activations, keys.place_of("activations"), comparison);
    comparison.grid =
        parse_grid(grid, comparison.base, keys.place_of("grid"), problems_);
  }
  experiment_.comparisons.push_back(std::move(comparison));
}

void ExperimentParser::read_sections(const std::vector<TomlSection>& sections) {
  // [quick] changes the comparisons, wherever it stands.
  for (const TomlSection& section : sections) {
    if (section.name == "quick") read_quick(section);
  }
  bool any = false;
  for (const TomlSection& section : sections) {
    if (section.name == "comparison") {
      any = true;
      add_comparison(section);
    } else if (!section.name.empty() && section.name != "quick") {
      problems_.add(place_text(source_, section.line, section.column),
                    fmt::format("unknown section {}: there are [[comparison]] "
                                "and [quick]",
                                base::in_quotes(section.name)));
    }
  }
  if (!any) problems_.add(source_, "there is no [[comparison]]");
}

Experiment ExperimentParser::parse(std::string_view text) {
  const std::vector<TomlSection> sections = read(text);
  SectionKeys keys(sections.front(), source_, problems_);
  experiment_.title = keys.required_text("title");
  experiment_.claim = keys.required_text("claim");
  experiment_.source = keys.required_text("source");
  keys.finish();
  read_sections(sections);
  problems_.check("experiment");
  return std::move(experiment_);
}

}  // namespace

Experiment parse_experiment(std::string_view text, std::string_view source,
                            ExperimentSize size) {
  return ExperimentParser(source, size).parse(text);
}

Experiment read_experiment(const std::filesystem::path& folder,
                           ExperimentSize size) {
  const std::filesystem::path path = folder / "experiment.toml";
  Experiment experiment =
      parse_experiment(read_toml_file(path), path.string(), size);
  experiment.name = folder.filename().string();
  return experiment;
}

std::vector<std::filesystem::path> find_experiments(
    const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (std::filesystem::exists(entry.path() / "experiment.toml")) {
      found.push_back(entry.path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace polyattn::run
