#include "physics/problem.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/message.h"
#include "train/run/problems.h"
#include "train/run/toml_section.h"

namespace polyattn::physics {
namespace {

using run::SectionKeys;
using run::TomlSection;

constexpr std::size_t kCoordinates = 2;
constexpr run::Range kPointRange = {.low = 3, .high = kMostPoints};

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 32 &&
         std::all_of(text.begin(), text.end(),
                     [](char c) {
                       return (c >= 'a' && c <= 'z') ||
                              (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
                     }) &&
         !(text.front() >= '0' && text.front() <= '9');
}

// The lines of an expression's error below each other.
std::string indented(std::string_view text) {
  std::string result;
  for (const char c : text) {
    result += c;
    if (c == '\n') result += "    ";
  }
  return result;
}

class ProblemParser {
 public:
  explicit ProblemParser(std::string_view source) : source_(source) {}

  Problem parse(std::string_view text);

 private:
  std::vector<TomlSection> read(std::string_view text);
  void read_names(SectionKeys& keys, const std::vector<TomlSection>& sections);
  void check_coordinates(const std::string& where);
  void read_parameters(const TomlSection& section);
  void read_domain(const TomlSection& section);
  void read_interval(const std::vector<run::TomlString>& ends,
                     const std::string& where, const std::string& name);
  void read_sampling(const TomlSection& section);
  void add_condition(const TomlSection& section);
  void add_edge(SectionKeys& keys, const std::string& where);
  void add_periodic(const std::string& name, const std::string& where);
  void check_equation(const Expression& equation, const std::string& where,
                      const std::string& key);
  void read_rest(const std::vector<TomlSection>& sections);

  std::string place_of(const TomlSection& section) const {
    return run::place_text(source_, section.line, section.column);
  }
  bool is_taken(const std::string& name) const;
  std::optional<std::size_t> index_of(std::string_view coordinate) const;

  // What the parser throws becomes a problem of the key.
  template <typename T>
  std::optional<T> parsed(const std::string& where, const std::string& key,
                          const std::string& text,
                          T (*parser)(std::string_view, const Names&),
                          const Names& names);

  std::string source_;
  run::Problems problems_;
  Problem problem_;
};

template <typename T>
std::optional<T> ProblemParser::parsed(
    const std::string& where, const std::string& key, const std::string& text,
    T (*parser)(std::string_view, const Names&), const Names& names) {
  if (text.empty()) return std::nullopt;  // said already
  try {
    return parser(text, names);
  } catch (const ExpressionError& error) {
    problems_.add(where, fmt::format("{}: {}", key, indented(error.what())));
    return std::nullopt;
  }
}

std::vector<TomlSection> ProblemParser::read(std::string_view text) {
  std::vector<TomlSection> sections;
  try {
    sections = run::read_toml(text, run::TomlTables::kSections);
  } catch (const run::TomlError& error) {
    problems_.add(run::place_text(source_, error.line(), error.column()),
                  error.what());
  }
  problems_.check("problem");
  return sections;
}

bool ProblemParser::is_taken(const std::string& name) const {
  return is_reserved(name) || name == problem_.names.unknown ||
         index_of(name).has_value();
}

std::optional<std::size_t> ProblemParser::index_of(
    std::string_view coordinate) const {
  const auto& all = problem_.names.coordinates;
  const auto found = std::find(all.begin(), all.end(), coordinate);
  if (found == all.end()) return std::nullopt;
  return static_cast<std::size_t>(found - all.begin());
}

void ProblemParser::check_coordinates(const std::string& where) {
  const auto& all = problem_.names.coordinates;
  if (all.size() != kCoordinates || all[0] == all[1]) {
    problems_.add(where, fmt::format("coordinates are {}, must be two, such as "
                                     "x and t",
                                     fmt::join(all, ", ")));
    return;
  }
  for (const std::string& name : all) {
    if (name.size() != 1 || !is_name(name)) {
      problems_.add(where, fmt::format("coordinates have {}, must be letters",
                                       base::in_quotes(name)));
    }
  }
  if (all[0] == "t") {
    problems_.add(where, "coordinates begin with t: time is the last");
  }
}

// First of all: every expression speaks of them.
void ProblemParser::read_names(SectionKeys& keys,
                               const std::vector<TomlSection>& sections) {
  Names& names = problem_.names;
  for (const auto& [text, line, column] : keys.required_strings("coordinates"))
    names.coordinates.push_back(text);
  check_coordinates(keys.place_of("coordinates"));
  names.unknown = keys.text("unknown");
  if (names.unknown.empty()) names.unknown = "u";
  if (!is_name(names.unknown) || is_reserved(names.unknown) ||
      index_of(names.unknown)) {
    problems_.add(keys.place_of("unknown"),
                  fmt::format("unknown is {}, must be a name of its own",
                              base::in_quotes(names.unknown)));
  }
  for (const TomlSection& section : sections) {
    if (section.name == "parameters") read_parameters(section);
  }
  problems_.check("problem");
}

void ProblemParser::read_parameters(const TomlSection& section) {
  for (const run::TomlEntry& entry : section.entries) {
    const std::string where =
        run::place_text(source_, entry.line, entry.column);
    const auto& value = entry.value.value;
    const auto* const real = value ? std::get_if<double>(&*value) : nullptr;
    const auto* const integer =
        value ? std::get_if<std::int64_t>(&*value) : nullptr;
    if (!is_name(entry.key) || is_taken(entry.key)) {
      problems_.add(where, fmt::format("the parameter {} must be a name of its "
                                       "own, of letters and digits",
                                       base::in_quotes(entry.key)));
    } else if (real == nullptr && integer == nullptr) {
      problems_.add(where, fmt::format("{} is {}, must be a number", entry.key,
                                       entry.value.type));
    } else if (real != nullptr && !std::isfinite(*real)) {
      problems_.add(where, fmt::format("{} is not finite", entry.key));
    } else {
      problem_.names.parameters[entry.key] =
          real != nullptr ? *real : static_cast<double>(*integer);
    }
  }
}

void ProblemParser::read_interval(const std::vector<run::TomlString>& ends,
                                  const std::string& where,
                                  const std::string& name) {
  Interval interval;
  if (ends.size() != 2) {
    problems_.add(where, fmt::format("{} has {} ends, must have two, as in "
                                     "[\"0\", \"2*pi\"]",
                                     name, ends.size()));
  } else {
    const auto low =
        parsed(where, name, ends[0].text, parse_constant, problem_.names);
    const auto high =
        parsed(where, name, ends[1].text, parse_constant, problem_.names);
    if (low && high && !(*low < *high && std::isfinite(*high - *low))) {
      problems_.add(where, fmt::format("{} goes from {} to {}: its domain has "
                                       "no size",
                                       name, *low, *high));
    }
    interval = {low.value_or(0), high.value_or(1)};
  }
  problem_.domain.push_back(interval);
}

void ProblemParser::read_domain(const TomlSection& section) {
  SectionKeys keys(section, source_, problems_);
  for (const std::string& name : problem_.names.coordinates) {
    const std::size_t before = problems_.count();
    const auto ends = keys.required_strings(name);
    if (problems_.count() > before) {
      problem_.domain.push_back({});
    } else {
      read_interval(ends, keys.place_of(name), name);
    }
  }
  keys.finish();
}

void ProblemParser::read_sampling(const TomlSection& section) {
  SectionKeys keys(section, source_, problems_);
  problem_.points = keys.integer("points", problem_.points, kPointRange);
  problem_.test_points =
      keys.integer("test_points", problem_.test_points, kPointRange);
  keys.finish();
}

void ProblemParser::check_equation(const Expression& equation,
                                   const std::string& where,
                                   const std::string& key) {
  const auto& symbols = equation.symbols;
  if (std::none_of(symbols.begin(), symbols.end(),
                   [](const Symbol& symbol) { return symbol.is_unknown; })) {
    problems_.add(where, fmt::format("{} holds neither {} nor a derivative of "
                                     "it",
                                     key, problem_.names.unknown));
  }
}

void ProblemParser::add_periodic(const std::string& name,
                                 const std::string& where) {
  const auto index = index_of(name);
  if (!index) {
    problems_.add(where, fmt::format("periodic is {}, which is no coordinate",
                                     base::in_quotes(name)));
    return;
  }
  problem_.conditions.push_back({.term = "boundary", .coordinate = *index});
}

void ProblemParser::add_edge(SectionKeys& keys, const std::string& where) {
  const Names& names = problem_.names;
  const auto place =
      parsed(where, "where", keys.required_text("where"), parse_place, names);
  const auto equation =
      parsed(keys.place_of("equation"), "equation",
             keys.required_text("equation"), parse_equation, names);
  if (equation)
    check_equation(*equation, keys.place_of("equation"), "equation");
  if (!place || !equation) return;
  const std::size_t index = *index_of(place->coordinate);
  const Interval& domain = problem_.domain[index];
  const double rounding = 1e-9 * (domain.high - domain.low);
  const bool low = std::abs(place->value - domain.low) <= rounding;
  const bool high = std::abs(place->value - domain.high) <= rounding;
  if (!low && !high) {
    problems_.add(where, fmt::format("where is {} = {}, must be an end of its "
                                     "domain: {} or {}",
                                     place->coordinate, place->value,
                                     domain.low, domain.high));
    return;
  }
  problem_.conditions.push_back(
      {.term = place->coordinate == "t" && low ? "initial" : "boundary",
       .coordinate = index,
       .high = high,
       .equation = *equation});
}

void ProblemParser::add_condition(const TomlSection& section) {
  SectionKeys keys(section, source_, problems_);
  const std::string periodic = keys.text("periodic");
  if (periodic.empty()) {
    add_edge(keys, keys.place_of("where"));
  } else {
    add_periodic(periodic, keys.place_of("periodic"));
  }
  keys.finish();
}

void ProblemParser::read_rest(const std::vector<TomlSection>& sections) {
  bool domain = false;
  for (const TomlSection& section : sections) {
    if (section.name == "domain") {
      domain = true;
      read_domain(section);
    } else if (section.name == "sampling") {
      read_sampling(section);
    } else if (!section.name.empty() && section.name != "parameters" &&
               section.name != "condition") {
      problems_.add(place_of(section),
                    fmt::format("unknown section {}: there are [parameters], "
                                "[domain], [[condition]] and [sampling]",
                                base::in_quotes(section.name)));
    }
  }
  if (!domain) problems_.add(source_, "there is no [domain]");
  problems_.check("problem");
  // The ends of the domain are where conditions hold.
  for (const TomlSection& section : sections) {
    if (section.name == "condition") add_condition(section);
  }
  if (problems_.empty() && problem_.conditions.empty())
    problems_.add(source_, "there is no [[condition]]");
}

Problem ProblemParser::parse(std::string_view text) {
  const std::vector<TomlSection> sections = read(text);
  problem_.text = text;
  SectionKeys keys(sections.front(), source_, problems_);
  problem_.title = keys.required_text("title");
  read_names(keys, sections);
  const auto equation =
      parsed(keys.place_of("equation"), "equation",
             keys.required_text("equation"), parse_equation, problem_.names);
  if (equation) {
    check_equation(*equation, keys.place_of("equation"), "equation");
    problem_.equation = *equation;
  }
  Names known = problem_.names;
  known.unknown.clear();
  const auto exact =
      parsed(keys.place_of("exact"), "exact", keys.required_text("exact"),
             parse_expression, known);
  if (exact) problem_.exact = *exact;
  keys.finish();
  read_rest(sections);
  problems_.check("problem");
  return std::move(problem_);
}

}  // namespace

Problem parse_problem(std::string_view text, std::string_view source) {
  return ProblemParser(source).parse(text);
}

Problem read_problem(const std::filesystem::path& path) {
  return parse_problem(run::read_toml_file(path), path.string());
}

}  // namespace polyattn::physics
