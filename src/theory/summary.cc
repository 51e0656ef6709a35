#include "theory/summary.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "base/statistics.h"

namespace polyattn::theory {
namespace {

// log(1 / epsilon), with epsilon on either side.
double log_odds(double tail) { return std::log(2 / tail); }

// Grows like x near 0 and like log x far out. [Catoni's psi]
double tempered(double x) {
  return std::copysign(std::log1p(std::abs(x) + x * x / 2), x);
}

}  // namespace

Summary summarize(std::span<const double> values) {
  Summary s;
  s.count = static_cast<std::int64_t>(values.size());
  if (values.empty()) return s;
  const auto n = static_cast<double>(s.count);
  for (const double value : values) s.mean += value / n;
  double squares = 0, cubes = 0;
  for (const double value : values) {
    const double d = value - s.mean;
    squares += d * d;
    cubes += d * d * d;
  }
  if (s.count == 1 || squares == 0) return s;
  s.deviation = std::sqrt(squares / (n - 1));
  s.skewness = cubes / n / std::pow(squares / n, 1.5);
  return s;
}

double normal_quantile(double tail) {
  double low = 0, high = 40;
  for (;;) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) return middle;
    const double beyond = std::erfc(middle / std::numbers::sqrt2);
    (beyond > tail ? low : high) = middle;
  }
}

// Hall (1992): with T = (mean - mu) / s, g(T) = T + c T^2 / 3 + c^2 T^3 / 27 +
// c / (6 n) is free of skewness c to second order, and it can be inverted.
Interval mean_interval(const Summary& s, double tail) {
  const auto n = static_cast<double>(s.count);
  const double t =
      base::student_t(1 - tail, static_cast<int>(s.count - 1)) / std::sqrt(n);
  const auto inverse = [&](double x) {
    const double c = s.skewness;
    if (std::abs(c) < 1e-6) return x;
    return 3 / c * (std::cbrt(1 + c * (x - c / (6 * n))) - 1);
  };
  return {.low = s.mean - s.deviation * inverse(t),
          .high = s.mean - s.deviation * inverse(-t)};
}

// Tried on log-normal samples: with a deviation of the logarithm up to 0.8 the
// interval is wrong as often as it should be, to a factor of 2, out to 1e-4;
// most of those with heavier tails are turned away.
bool speaks_for_itself(const Summary& s) {
  constexpr std::int64_t kFewest = 100;
  constexpr double kMostError = 0.03, kMostSkewness = 0.15;
  const double root = std::sqrt(static_cast<double>(s.count));
  return s.count >= kFewest &&
         s.deviation / root <= kMostError * std::abs(s.mean) &&
         std::abs(s.skewness) / root <= kMostSkewness;
}

double robust_mean(std::span<const double> values, double variance,
                   double tail) {
  const auto n = static_cast<double>(values.size());
  const double mean = summarize(values).mean;
  if (!(variance > 0) || !std::isfinite(mean)) return mean;
  const double odds = 2 * log_odds(tail);
  const double alpha = std::sqrt(odds * (n - odds) / variance) / n;
  const auto pull = [&](double centre) {
    double sum = 0;
    for (const double value : values) sum += tempered(alpha * (value - centre));
    return sum;
  };
  auto [low, high] = std::minmax_element(values.begin(), values.end());
  double below = *low, above = *high;
  // pull falls steadily. 60 halvings leave the width of rounding errors.
  for (int i = 0; i < 60; ++i) {
    const double middle = below + (above - below) / 2;
    (pull(middle) > 0 ? below : above) = middle;
  }
  return below;
}

double robust_half_width(double variance, std::int64_t count, double tail) {
  const double odds = 2 * log_odds(tail);
  return std::sqrt(variance * odds / (static_cast<double>(count) - odds));
}

std::int64_t robust_least_count(double tail) {
  // Twice what the inequality needs, where its width is still 1.4 times that
  // of many values.
  return static_cast<std::int64_t>(std::ceil(4 * log_odds(tail)));
}

Median median_of(std::span<const double> values, double tail) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const auto n = static_cast<double>(sorted.size());
  // Ranks from the normal approximation of the binomial distribution, rounded
  // outwards.
  const double reach = normal_quantile(tail) * std::sqrt(n) / 2;
  const double last = n - 1;
  const auto at = [&](double rank) {
    return sorted[static_cast<std::size_t>(std::clamp(rank, 0.0, last))];
  };
  Median median;
  median.value = (at(std::floor(last / 2)) + at(std::ceil(last / 2))) / 2;
  // Even the whole sample lies on one side with probability 2^(1 - n).
  if (std::exp2(1 - n) > tail) return median;
  median.interval = {.low = at(std::floor(last / 2 - reach)),
                     .high = at(std::ceil(last / 2 + reach))};
  return median;
}

}  // namespace polyattn::theory
