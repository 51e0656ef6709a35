#include "train/run/differences.h"

#include <algorithm>
#include <cmath>

#include "base/statistics.h"

namespace polyattn::run {
namespace {

constexpr double kConfidence = 0.95;
constexpr double kPowerQuantile = 0.8416212335729143;  // 80 % of the normal
// Pooled intervals hold if no activation has more than this times the variance
// of another.
constexpr double kMaxVarianceRatio = 4;
// From here on the own variance gives intervals that are no wider, and needs no
// assumption.
constexpr int kOwnVarianceSeeds = 10;

// By what the half width is longer than the standard error of the difference.
double own_factor(int intervals, int seeds) {
  return base::student_t(1 - (1 - kConfidence) / intervals, seeds - 1);
}

// The pooled variance falls short the most if the reference alone scatters
// more, r times as much: a difference then has (r + 1) and the pool 2 (r +
// pooled - 1)/pooled times the variance of the others.
double pooled_factor(const IntervalBasis& basis) {
  const double r = kMaxVarianceRatio;
  return base::maximum_modulus(kConfidence, basis.intervals, basis.degrees) *
         std::sqrt((r + 1) * basis.pooled / (2 * (r + basis.pooled - 1)));
}

std::vector<double> paired_differences(const std::vector<double>& figures,
                                       const std::vector<double>& reference) {
  std::vector<double> differences;
  for (std::size_t s = 0; s < figures.size(); ++s) {
    if (!std::isnan(figures[s])) {
      differences.push_back(figures[s] - reference[s]);
    }
  }
  return differences;
}

// Of the rows that are compared: by the pooled variance, or else by their own.
void add_intervals(const std::vector<std::size_t>& compared,
                   const std::vector<std::size_t>& pool,
                   const std::vector<double>& variances, Differences& result) {
  const double factor = pool.empty() ? 0 : pooled_factor(result.basis);
  for (const std::size_t i : compared) {
    Difference& row = result.rows[i];
    row.pooled = row.pairs < kOwnVarianceSeeds &&
                 std::find(pool.begin(), pool.end(), i) != pool.end();
    row.half_width = row.pooled
                         ? factor * std::sqrt(result.basis.variance / row.pairs)
                         : own_factor(result.basis.intervals, row.pairs) *
                               std::sqrt(variances[i] / row.pairs);
    if (pool.empty())
      result.basis.variance += variances[i] / result.basis.intervals;
  }
}

}  // namespace

Differences differences_to(std::size_t reference,
                           const std::vector<SeedFigures>& rows,
                           double resolution) {
  const Layout layout = layout_of(reference, rows);
  // Of one figure. A variance that is NaN stays so: std::max gives its first.
  const double rounding = resolution * resolution / 12;
  Differences result;
  std::vector<double> variances;
  std::vector<std::size_t> compared = {reference};
  int fewest = kOwnVarianceSeeds;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const base::Sample sample =
        base::sample_of(paired_differences(layout[i], layout[reference]));
    result.rows.push_back({sample.count, sample.mean});
    variances.push_back(
        std::max(sample.deviation * sample.deviation, 2 * rounding));
    if (i == reference || sample.count < 2) continue;
    compared.push_back(i);
    fewest = std::min(fewest, sample.count);
  }
  std::vector<std::size_t> pool;
  if (fewest < kOwnVarianceSeeds) {
    pool = pool_of(reference, layout, compared, rounding);
  }
  if (!pool.empty()) {
    const Residual residual = residual_of(layout, pool);
    result.basis.pooled = static_cast<int>(pool.size());
    result.basis.degrees = residual.degrees;
    result.basis.variance = 2 * std::max(residual.variance(), rounding);
  }
  compared.erase(compared.begin());
  result.basis.intervals = static_cast<int>(compared.size());
  add_intervals(compared, pool, variances, result);
  return result;
}

std::optional<int> seeds_to_tell(double size, const IntervalBasis& basis) {
  const double errors = std::sqrt(basis.variance) / size;
  for (int seeds = 2; seeds <= kMaxSeeds; ++seeds) {
    const double factor =
        basis.pooled > 0 && seeds < kOwnVarianceSeeds
            ? pooled_factor({.intervals = basis.intervals,
                             .pooled = basis.pooled,
                             .degrees = (basis.pooled - 1) * (seeds - 1)})
            : own_factor(basis.intervals, seeds);
    if (std::sqrt(seeds) >= errors * (factor + kPowerQuantile)) return seeds;
  }
  return {};
}

}  // namespace polyattn::run
