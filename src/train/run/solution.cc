#include "train/run/solution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>

#include "base/message.h"
#include "base/text_file.h"

namespace polyattn::run {
namespace {

using base::Json;
using base::JsonError;

constexpr std::size_t kMaxAxisName = 32;

bool values_rise(const std::vector<double>& values) {
  return std::adjacent_find(values.begin(), values.end(),
                            std::greater_equal<>()) == values.end();
}

bool values_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](double value) { return std::isfinite(value); });
}

// What is wrong with it; empty if nothing is.
std::string flaw_of(const SolutionAxis& axis, const char* key) {
  if (axis.name.empty() || axis.name.size() > kMaxAxisName) {
    return fmt::format("the name of \"{}\" has {} bytes, must have 1 to {}",
                       key, axis.name.size(), kMaxAxisName);
  }
  if (axis.values.size() < 2 || axis.values.size() > kMostSolutionValues) {
    return fmt::format("\"{}\" has {} values, must have 2 to {}", key,
                       axis.values.size(), kMostSolutionValues);
  }
  if (!values_finite(axis.values) || !values_rise(axis.values)) {
    return fmt::format("the values of \"{}\" do not rise", key);
  }
  return "";
}

std::string flaw_of(const Solution& solution) {
  for (const auto& [axis, key] : {std::pair{&solution.columns, "columns"},
                                  std::pair{&solution.rows, "rows"}}) {
    std::string flaw = flaw_of(*axis, key);
    if (!flaw.empty()) return flaw;
  }
  const std::size_t points =
      solution.columns.values.size() * solution.rows.values.size();
  for (const auto& [values, key] :
       {std::pair{&solution.exact, "exact"},
        std::pair{&solution.predicted, "predicted"}}) {
    if (values->size() == points) continue;
    return fmt::format("\"{}\" has {} numbers for {} points", key,
                       values->size(), points);
  }
  return values_finite(solution.exact) ? ""
                                       : "a number of \"exact\" is not finite";
}

Json solution_list(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(base::number(value));
  return list;
}

const Json& solution_part(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found != object.end()) return *found;
  throw JsonError(fmt::format("\"{}\" is missing", key));
}

std::vector<double> solution_numbers(const Json& object, const char* key) {
  const Json& list = solution_part(object, key);
  if (!list.is_array()) throw JsonError(fmt::format("\"{}\" is no list", key));
  std::vector<double> values;
  values.reserve(list.size());
  for (const Json& value : list) values.push_back(base::number_of(value));
  return values;
}

SolutionAxis axis_at(const Json& object, const char* key) {
  const Json& json = solution_part(object, key);
  if (!json.is_object()) {
    throw JsonError(fmt::format("\"{}\" is no object", key));
  }
  const Json& name = solution_part(json, "name");
  if (!name.is_string()) {
    throw JsonError(fmt::format("the name of \"{}\" is no string", key));
  }
  return {.name = name.get<std::string>(),
          .values = solution_numbers(json, "values")};
}

}  // namespace

Json solution_json(const Solution& solution) {
  const std::string flaw = flaw_of(solution);
  if (!flaw.empty()) throw std::invalid_argument("[solution] " + flaw);
  const auto axis_json = [](const SolutionAxis& axis) {
    return Json{{"name", axis.name}, {"values", solution_list(axis.values)}};
  };
  return {{"columns", axis_json(solution.columns)},
          {"rows", axis_json(solution.rows)},
          {"exact", solution_list(solution.exact)},
          {"predicted", solution_list(solution.predicted)}};
}

Solution parse_solution(std::string_view text) {
  const Json json = base::parse_json(text);
  if (!json.is_object()) throw JsonError("it is no JSON object");
  Solution solution{.columns = axis_at(json, "columns"),
                    .rows = axis_at(json, "rows"),
                    .exact = solution_numbers(json, "exact"),
                    .predicted = solution_numbers(json, "predicted")};
  const std::string flaw = flaw_of(solution);
  if (!flaw.empty()) throw JsonError(flaw);
  return solution;
}

void write_solution(const std::filesystem::path& folder,
                    const Solution& solution) {
  base::write_text_file(folder / "solution.json",
                        solution_json(solution).dump() + "\n");
}

}  // namespace polyattn::run
