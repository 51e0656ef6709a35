#include "train/run/pooling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/statistics.h"

namespace polyattn::run {
namespace {

// What is out of line at this level is not pooled. A test with less than these
// degrees of freedom to compare with would tell little, and choose by chance.
constexpr double kOutOfLine = 0.01;
constexpr int kLeastDegrees = 3;

// The figures that there are, with the seed and the row of each.
struct Observations {
  std::vector<double> figures;
  std::vector<std::size_t> seeds, rows;
};

Observations observations_of(const Layout& layout,
                             const std::vector<std::size_t>& rows) {
  Observations result;
  for (const std::size_t row : rows) {
    for (std::size_t s = 0; s < layout[row].size(); ++s) {
      if (std::isnan(layout[row][s])) continue;
      result.figures.push_back(layout[row][s]);
      result.seeds.push_back(s);
      result.rows.push_back(row);
    }
  }
  return result;
}

// Subtracts from each value the mean of its seed. Returns how many seeds there
// are.
int centre_seeds(const std::vector<std::size_t>& seeds,
                 std::vector<double>& values) {
  std::map<std::size_t, std::pair<double, int>> sums;
  for (std::size_t i = 0; i < values.size(); ++i) {
    auto& [sum, count] = sums[seeds[i]];
    sum += values[i];
    ++count;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto& [sum, count] = sums[seeds[i]];
    values[i] -= sum / count;
  }
  return static_cast<int>(sums.size());
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

void take_out(const std::vector<double>& direction,
              std::vector<double>& values) {
  const double share = dot(direction, values) / dot(direction, direction);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] -= share * direction[i];
  }
}

std::vector<std::size_t> without(std::vector<std::size_t> rows,
                                 std::size_t position) {
  rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(position));
  return rows;
}

// The probability of a row that differs so much from what the others leave, if
// all have the same variance: removing a row removes its share of the squares,
// which is independent of what is left.
double probability(const Residual& all, const Residual& rest, double least) {
  const int degrees = all.degrees - rest.degrees;
  if (degrees < 1 || rest.degrees < kLeastDegrees) return 1;
  const double own = (all.squares - rest.squares) / degrees;
  const double others = std::max(least, rest.variance());
  if (!(own > others)) return 1;
  return base::variance_ratio_tail(own / others, degrees, rest.degrees);
}

}  // namespace

Layout layout_of(std::size_t reference, const std::vector<SeedFigures>& rows) {
  constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
  Layout layout(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const auto& [seed, ignored] : rows[reference]) {
      const auto found = rows[i].find(seed);
      layout[i].push_back(found == rows[i].end() ? kMissing : found->second);
    }
  }
  return layout;
}

// Seeds are taken out by centring, then activations one by one (Gram-Schmidt):
// figures may be missing.
Residual residual_of(const Layout& layout,
                     const std::vector<std::size_t>& rows) {
  const Observations data = observations_of(layout, rows);
  std::vector<double> values = data.figures;
  int degrees = static_cast<int>(values.size());
  degrees -= centre_seeds(data.seeds, values);
  std::vector<std::vector<double>> directions;
  for (const std::size_t row : rows) {
    std::vector<double> direction;
    for (const std::size_t r : data.rows) direction.push_back(r == row ? 1 : 0);
    centre_seeds(data.seeds, direction);
    for (const auto& earlier : directions) take_out(earlier, direction);
    if (dot(direction, direction) < 1e-9) continue;  // follows from the others
    take_out(direction, values);
    directions.push_back(std::move(direction));
    --degrees;
  }
  const double squares = dot(values, values);
  const double rounding = 1e-30 * dot(data.figures, data.figures);
  // Figures that overflow are no agreement.
  const bool agree = squares <= rounding && std::isfinite(squares);
  return {agree ? 0 : squares, degrees};
}

std::vector<std::size_t> pool_of(std::size_t reference, const Layout& layout,
                                 std::vector<std::size_t> rows, double least) {
  for (;;) {
    if (rows.size() < 3) return {};
    const Residual all = residual_of(layout, rows);
    std::vector<double> chances;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      chances.push_back(
          probability(all, residual_of(layout, without(rows, i)), least));
    }
    const auto smallest = std::min_element(chances.begin(), chances.end());
    if (*smallest * static_cast<double>(rows.size()) >= kOutOfLine) return rows;
    const auto worst = static_cast<std::size_t>(smallest - chances.begin());
    if (rows[worst] == reference) return {};
    rows = without(rows, worst);
  }
}

}  // namespace polyattn::run
