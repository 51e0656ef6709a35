#include "theory/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/statistics.h"

namespace polyattn::theory {
namespace {

// sum w (x - x0) y with sum w (x - x0) = 0.
struct WeightedLine {
  double centre = 0;  // x0
  double spread = 0;  // sum w (x - x0)^2
};

double line_weight(const LengthNorm& n) {
  return 1 / (n.relative_error * n.relative_error);
}

void check_norm(const LengthNorm& n) {
  for (const double value : {n.tokens, n.norm, n.relative_error, n.expected}) {
    if (value > 0 && std::isfinite(value)) continue;
    throw std::invalid_argument(
        fmt::format("[fit_exponent] {} is no finite number above 0", value));
  }
}

WeightedLine weighted_line(std::span<const LengthNorm> norms) {
  double weights = 0, sum = 0;
  for (const LengthNorm& n : norms) {
    check_norm(n);
    weights += line_weight(n);
    sum += line_weight(n) * std::log(n.tokens);
  }
  WeightedLine line{.centre = sum / weights};
  bool different = false;
  for (const LengthNorm& n : norms) {
    const double x = std::log(n.tokens) - line.centre;
    line.spread += line_weight(n) * x * x;
    different = different || n.tokens != norms.front().tokens;
  }
  if (!different) {
    throw std::invalid_argument(
        "[fit_exponent] a slope needs two different lengths");
  }
  return line;
}

template <typename Value>
double slope_of(std::span<const LengthNorm> norms, const WeightedLine& line,
                const Value& value) {
  double sum = 0;
  for (const LengthNorm& n : norms) {
    sum += line_weight(n) * (std::log(n.tokens) - line.centre) *
           std::log(value(n));
  }
  return sum / line.spread;
}

// sum w (residual of log measured/expected)^2
double scatter(std::span<const LengthNorm> norms, const WeightedLine& line,
               double slope) {
  double weights = 0, mean = 0, sum = 0;
  for (const LengthNorm& n : norms) {
    weights += line_weight(n);
    mean += line_weight(n) * std::log(n.norm / n.expected);
  }
  mean /= weights;
  for (const LengthNorm& n : norms) {
    const double fitted = mean + slope * (std::log(n.tokens) - line.centre);
    const double residual = std::log(n.norm / n.expected) - fitted;
    sum += line_weight(n) * residual * residual;
  }
  return sum;
}

}  // namespace

Exponent fit_exponent(std::span<const LengthNorm> norms) {
  const WeightedLine line = weighted_line(norms);
  Exponent e;
  e.slope = slope_of(norms, line, [](const LengthNorm& n) { return n.norm; });
  e.expected =
      slope_of(norms, line, [](const LengthNorm& n) { return n.expected; });
  e.degrees_of_freedom = static_cast<int>(norms.size()) - 2;
  e.error = 1 / std::sqrt(line.spread);
  if (e.degrees_of_freedom > 0) {
    const double excess =
        scatter(norms, line, e.slope - e.expected) / e.degrees_of_freedom;
    e.error *= std::sqrt(std::max(1.0, excess));
  }
  return e;
}

Interval exponent_interval(const Exponent& e, double tail) {
  const double reach = e.degrees_of_freedom > 0
                           ? base::student_t(1 - tail, e.degrees_of_freedom)
                           : normal_quantile(tail);
  return {.low = e.slope - reach * e.error, .high = e.slope + reach * e.error};
}

}  // namespace polyattn::theory
