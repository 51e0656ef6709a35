#include "cli/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>

namespace polyattn::cli {
namespace {

double quantile(const std::vector<double>& sorted, double p) {
  const double position = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(position));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double fraction = position - static_cast<double>(below);
  return sorted[below] + fraction * (sorted[above] - sorted[below]);
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  if (values.empty()) {
    throw std::invalid_argument("[spread_of] no values");
  }
  std::sort(values.begin(), values.end());
  return {quantile(values, 0.5), quantile(values, 0.25),
          quantile(values, 0.75)};
}

}  // namespace polyattn::cli
