#include "report/solution_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/base64.h"
#include "base/json_text.h"
#include "report/text.h"

namespace polyattn::report {
namespace {

constexpr std::uint16_t kNotFinite = 0xFFFF;
constexpr double kSteps = 0xFFFE;
// Beyond it a range would not fit into a double.
constexpr double kLargest = 1e300;

bool is_shown(double value) { return std::abs(value) <= kLargest; }

// All, or so many with the first and the last.
std::vector<std::size_t> shown_of(std::size_t count) {
  const std::size_t shown = std::min(count, kMostShownValues);
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < shown; ++i) {
    indices.push_back(i * (count - 1) / (shown - 1));
  }
  return indices;
}

std::string axis_text(const run::SolutionAxis& axis,
                      const std::vector<std::size_t>& shown) {
  std::string values;
  for (const std::size_t i : shown) {
    if (!values.empty()) values += ',';
    append_number(values, axis.values[i]);
  }
  return fmt::format(R"({{"name":{},"values":[{}]}})",
                     base::printed(base::Json(axis.name)), values);
}

std::string field_text(const std::vector<double>& values) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const double value : values) {
    if (!is_shown(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (low > high) low = high = 0;
  const double step = (high - low) / kSteps;
  std::vector<std::uint8_t> bytes;
  bytes.reserve(2 * values.size());
  for (const double value : values) {
    std::uint16_t code = kNotFinite;
    if (is_shown(value)) {
      const double place = step > 0 ? (value - low) / step : 0;
      code = static_cast<std::uint16_t>(
          std::lround(std::clamp(place, 0.0, kSteps)));
    }
    bytes.push_back(static_cast<std::uint8_t>(code & 0xFFU));
    bytes.push_back(static_cast<std::uint8_t>(code >> 8U));
  }
  return fmt::format(R"({{"low":{},"step":{},"values":"{}"}})",
                     base::printed(base::Json(low)),
                     base::printed(base::Json(step)), base::base64(bytes));
}

}  // namespace

std::string solution_text(const run::Solution& solution) {
  const auto columns = shown_of(solution.columns.values.size());
  const auto rows = shown_of(solution.rows.values.size());
  std::vector<double> exact, error;
  for (const std::size_t row : rows) {
    for (const std::size_t column : columns) {
      const std::size_t at = row * solution.columns.values.size() + column;
      exact.push_back(solution.exact[at]);
      error.push_back(solution.predicted[at] - solution.exact[at]);
    }
  }
  return fmt::format(R"({{"columns":{},"rows":{},"exact":{},"error":{}}})",
                     axis_text(solution.columns, columns),
                     axis_text(solution.rows, rows), field_text(exact),
                     field_text(error));
}

}  // namespace polyattn::report
