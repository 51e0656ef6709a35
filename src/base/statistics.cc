#include "base/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace polyattn::base {
namespace {

// The continued fraction of the incomplete beta function, by the modified
// method of Lentz. Converges fast for x < (a + 1)/(a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  constexpr int kMaxTerms = 10000;
  const auto away_from_zero = [](double value) {
    return std::abs(value) < kTiny ? kTiny : value;
  };
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double fraction = d;
  for (int m = 1; m <= kMaxTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    fraction *= d * c;
    const double odd =
        -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    fraction *= d * c;
    if (std::abs(d * c - 1) <= std::numeric_limits<double>::epsilon()) break;
  }
  return fraction;
}

// I_x(a, b), the regularised incomplete beta function, for 0 <= x <= 1.
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
               a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

// P(|T| > t).
double student_tail(double t, double degrees) {
  return incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t));
}

double quantile(const std::vector<double>& sorted, double p) {
  const double position = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(position));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double fraction = position - static_cast<double>(below);
  return sorted[below] + fraction * (sorted[above] - sorted[below]);
}

}  // namespace

Sample sample_of(const std::vector<double>& values) {
  Sample sample;
  sample.count = static_cast<int>(values.size());
  if (values.empty()) return sample;
  for (const double value : values) sample.mean += value;
  sample.mean /= sample.count;
  if (sample.count == 1) return sample;
  double squares = 0;
  for (const double value : values) {
    squares += (value - sample.mean) * (value - sample.mean);
  }
  sample.deviation = std::sqrt(squares / (sample.count - 1));
  return sample;
}

double student_t(double confidence, int degrees_of_freedom) {
  if (!(confidence > 0 && confidence < 1) || degrees_of_freedom < 1) {
    throw std::invalid_argument(fmt::format(
        "[student_t] confidence {} is not in (0, 1), or degrees of freedom {} "
        "are less than 1",
        confidence, degrees_of_freedom));
  }
  const double degrees = degrees_of_freedom;
  const double tail = 1 - confidence;
  double low = 0, high = 1;
  while (student_tail(high, degrees) > tail) {
    low = high;
    high *= 2;
  }
  // The tail falls steadily: halve until the doubles between them are used up.
  for (;;) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) return middle;
    (student_tail(middle, degrees) > tail ? low : high) = middle;
  }
}

double sampling_error(double share, std::int64_t count) {
  constexpr double kZ = 1.959963984540054;  // 97.5 % of the normal distribution
  const double n = static_cast<double>(count);
  return kZ / (1 + kZ * kZ / n) *
         std::sqrt(share * (1 - share) / n + kZ * kZ / (4 * n * n));
}

Spread spread_of(std::vector<double> values) {
  if (values.empty()) {
    throw std::invalid_argument("[spread_of] no values");
  }
  std::sort(values.begin(), values.end());
  return {quantile(values, 0.5), quantile(values, 0.25),
          quantile(values, 0.75)};
}

}  // namespace polyattn::base
