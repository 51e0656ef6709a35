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

// Where a tail that falls from 1 to 0 passes `wanted`, by false position: the
// end that stays counts half the next time (Illinois), so that both move.
template <typename Tail>
double where_tail_is(double wanted, Tail tail) {
  constexpr double kTolerance = 1e-15;
  double low = 0, above = 1 - wanted;
  double high = 1, below = tail(high) - wanted;
  while (below > 0) {
    low = high;
    above = below;
    high *= 2;
    below = tail(high) - wanted;
  }
  int stayed = 0;  // -1: low, 1: high
  for (double last = high;;) {
    const double middle = (low * below - high * above) / (below - above);
    if (std::abs(middle - last) <= kTolerance * middle) return middle;
    last = middle;
    const double excess = tail(middle) - wanted;
    if (excess > 0) {
      low = middle;
      above = excess;
      if (stayed == 1) below /= 2;
      stayed = 1;
    } else {
      high = middle;
      below = excess;
      if (stayed == -1) above /= 2;
      stayed = -1;
    }
  }
}

// Points and weights of an expectation over s, where degrees s^2 is
// chi-squared: the trapezoidal rule in log s, whose error falls exponentially
// because the density is analytic and vanishes at both ends.
struct ScaleRule {
  std::vector<double> points, weights;
};

ScaleRule scale_rule(double degrees) {
  constexpr double kNegligible = 30;  // e^-30 is 1e-13
  const double low = -kNegligible / degrees - 9 / std::sqrt(degrees);
  const double high =
      std::log1p(2 * kNegligible / degrees + 9 / std::sqrt(degrees)) / 2 +
      4.5 / std::sqrt(degrees);
  const double step = std::min(0.2, 0.35 / std::sqrt(degrees));
  const double front = std::log(2) + degrees / 2 * std::log(degrees / 2) -
                       std::lgamma(degrees / 2);
  ScaleRule rule;
  for (double y = low; y < high; y += step) {
    const double s = std::exp(y);
    const double weight = step * std::exp(front + degrees * (y - s * s / 2));
    if (weight < 1e-17) continue;
    rule.points.push_back(s);
    rule.weights.push_back(weight);
  }
  return rule;
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
  return where_tail_is(1 - confidence, [&](double t) {
    return student_tail(t, degrees_of_freedom);
  });
}

double maximum_modulus(double confidence, int count,
                       double degrees_of_freedom) {
  if (!(confidence > 0 && confidence < 1) || count < 1 ||
      !(degrees_of_freedom >= 1)) {
    throw std::invalid_argument(fmt::format(
        "[maximum_modulus] confidence {} is not in (0, 1), or count {} or "
        "degrees of freedom {} are less than 1",
        confidence, count, degrees_of_freedom));
  }
  const auto exceeds = [&](double t) {
    return 1 - std::pow(std::erf(t * M_SQRT1_2), count);
  };
  if (std::isinf(degrees_of_freedom)) {
    return where_tail_is(1 - confidence, exceeds);
  }
  const ScaleRule rule = scale_rule(degrees_of_freedom);
  return where_tail_is(1 - confidence, [&](double t) {
    double tail = 0;
    for (std::size_t i = 0; i < rule.points.size(); ++i) {
      tail += rule.weights[i] * exceeds(t * rule.points[i]);
    }
    return tail;
  });
}

double variance_ratio_tail(double ratio, int degrees_above, int degrees_below) {
  const double above = degrees_above, below = degrees_below;
  return incomplete_beta(below / 2, above / 2, below / (below + above * ratio));
}

double sampling_error(double share, std::int64_t count, int comparisons) {
  const double z = maximum_modulus(0.95, comparisons,
                                   std::numeric_limits<double>::infinity());
  const double n = static_cast<double>(count);
  return z / (1 + z * z / n) *
         std::sqrt(share * (1 - share) / n + z * z / (4 * n * n));
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
