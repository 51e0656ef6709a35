// The expectations of expectation.h. All have one form, a sum over the pairs
// (i, j) in which row i sees key j:
//
//   sum_ij E[f(s_ij)^2 r_ij] / divisor_i^2       f = phi or phi'
//
// with r = 1, |k_j|^2 / D or |ds_ij/dX|^2. The expectation is the same for all
// pairs of two tokens, and for all pairs of a token with itself, so two of them
// and two sums of 1/divisor^2 are enough.
#include "theory/expectation.h"

#include <array>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>

namespace polyattn::theory {
namespace {

// r above.
enum class Factor : std::uint8_t { kOne, kKey, kInput };

struct ExpectedNorm {
  const char* name;
  bool derivative;  // f = phi'
  Factor factor;
};

using Coefficients = std::array<double, kMaxDegree + 1>;

void require_exact(bool ok, const std::string& message) {
  if (!ok) throw std::invalid_argument("[theory] " + message);
}

void check_width(std::int64_t width) {
  require_exact(width >= 1, "width " + std::to_string(width) + " < 1");
}

void check_polynomial(const Activation& a) {
  // First, because to_string() relies on it.
  require_exact(a.degree >= 0 && a.degree <= kMaxDegree,
                "degree " + std::to_string(a.degree) + " is not in 0 .. " +
                    std::to_string(kMaxDegree));
  require_exact(
      a.kind == ActivationKind::kPolynomial && a.divisor != Divisor::kSum,
      "no exact expectation is known for \"" + a.to_string() +
          "\": give a polynomial without /sum, such as x^3/sqrt(N)");
  for (const double c : a.coefficient) {
    require_exact(std::isfinite(c),
                  "coefficient " + std::to_string(c) + " is not finite");
  }
}

void check_random(const Setting& s) {
  require_exact(s.tokens >= 1, "tokens " + std::to_string(s.tokens) + " < 1");
  check_width(s.width);
  if (s.source == Source::kQueriesKeys) return;
  require_exact(s.channels >= 1,
                "channels " + std::to_string(s.channels) + " < 1");
  require_exact(std::isfinite(s.projection_std) && s.projection_std >= 0,
                "projection_std " + std::to_string(s.projection_std) +
                    " is not a finite number >= 0");
}

// f = sum_i b_i t^i with the powers of projection_std taken out of the score
// (s = std^2 t) and of r (std^2 in |k|^2, std^4 in |ds/dX|^2). Factor by
// factor, so that a small coefficient meets a large std before that can
// overflow.
Coefficients coefficients(const Activation& a, const Setting& s,
                          const ExpectedNorm& norm) {
  const int order = norm.derivative ? 1 : 0;
  const double std = s.source == Source::kProjections ? s.projection_std : 1.0;
  Coefficients b{};
  for (int i = 0; i + order <= a.degree; ++i) {
    b[i] = a.coefficient[i + order] * (norm.derivative ? i + 1 : 1);
    const int powers = 2 * i + static_cast<int>(norm.factor);
    for (int k = 0; k < powers; ++k) b[i] *= std;
  }
  return b;
}

// E|x|^(2r) for x ~ N(0, I_C).
double chi_moment(int r, double channels) {
  double product = 1;
  for (int i = 0; i < r; ++i) product *= channels + 2.0 * i;
  return product;
}

// What the lengths of the rows of X multiply E[t^(2m) r] by, in a pair of two
// tokens or of the same one.
double length_moment(int m, Factor factor, double c, bool same) {
  switch (factor) {
    case Factor::kOne:
      return same ? chi_moment(2 * m, c) : chi_moment(m, c) * chi_moment(m, c);
    case Factor::kKey:
      return same ? chi_moment(2 * m + 1, c)
                  : chi_moment(m, c) * chi_moment(m + 1, c);
    case Factor::kInput:
      break;
  }
  return 2 * (same ? (c + 4.0 * m + 1) * chi_moment(2 * m + 1, c)
                   : chi_moment(m + 1, c) * chi_moment(m + 1, c));
}

// E[t^(2m) r] at projection_std 1.
double pair_moment(int m, Factor factor, const Setting& s, bool same) {
  double moment = score_moment(2 * m, s.width);
  if (factor != Factor::kOne) {
    moment *= 1 + 2.0 * m / static_cast<double>(s.width);
  }
  if (s.source == Source::kQueriesKeys) return moment;
  return moment *
         length_moment(m, factor, static_cast<double>(s.channels), same);
}

// sum_ij b_i b_j E[t^(i+j) r]: odd powers are zero.
double pair_expectation(const Coefficients& b, Factor factor, const Setting& s,
                        bool same) {
  double sum = 0;
  for (int m = 0; m <= kMaxDegree; ++m) {
    const double moment = pair_moment(m, factor, s, same);
    for (int i = 0; i <= kMaxDegree; ++i) {
      const int j = 2 * m - i;
      if (j < 0 || j > kMaxDegree || b[i] == 0 || b[j] == 0) continue;
      sum += b[i] * moment * b[j];
    }
  }
  return sum;
}

// sum_{n=1..count} of 1/n and of 1/n^2.
struct Harmonic {
  double first, second;
};

Harmonic harmonic(std::int64_t count) {
  // From here on the next terms of the Euler-Maclaurin series, 1/(120 n^4) and
  // 1/(30 n^5), are below 1e-16.
  constexpr std::int64_t kSeries = 4096;
  const auto n = static_cast<double>(count);
  if (count >= kSeries) {
    return {.first = std::log(n) + std::numbers::egamma +
                     (1.0 / 2 - 1 / (12 * n)) / n,
            .second = std::numbers::pi * std::numbers::pi / 6 -
                      (1 - (1.0 / 2 - 1 / (6 * n)) / n) / n};
  }
  Harmonic sum{};
  for (std::int64_t i = count; i >= 1; --i) {
    const double term = 1 / static_cast<double>(i);
    sum.first += term;
    sum.second += term * term;
  }
  return sum;
}

// sum of 1/divisor_i^2 over the pairs of two tokens, and of a token with
// itself.
struct PairSums {
  double two, one;
};

PairSums full_sums(double n, Divisor divisor) {
  if (divisor == Divisor::kSqrtN) return {.two = n - 1, .one = 1};
  if (divisor == Divisor::kN) return {.two = (n - 1) / n, .one = 1 / n};
  return {.two = n * (n - 1), .one = n};
}

// Row i has i pairs of two tokens, one of a token with itself, and n_i = i + 1.
PairSums causal_sums(std::int64_t tokens, Divisor divisor) {
  const auto n = static_cast<double>(tokens);
  if (divisor == Divisor::kOne) return {.two = n * (n - 1) / 2, .one = n};
  const Harmonic h = harmonic(tokens);
  if (divisor == Divisor::kSqrtN) return {.two = n - h.first, .one = h.first};
  return {.two = h.first - h.second, .one = h.second};
}

double expected_sq(const Activation& a, const Setting& s,
                   const ExpectedNorm& norm) {
  check_polynomial(a);
  check_random(s);
  const Coefficients b = coefficients(a, s, norm);
  const PairSums sums =
      s.causal ? causal_sums(s.tokens, a.divisor)
               : full_sums(static_cast<double>(s.tokens), a.divisor);
  double result = sums.one * pair_expectation(b, norm.factor, s, true);
  if (s.tokens > 1) {
    result += sums.two * pair_expectation(b, norm.factor, s, false);
  }
  if (std::isfinite(result)) return result;
  throw std::overflow_error(
      std::string("[theory] the expected squared norm of ") + norm.name +
      " is beyond the range of double for \"" + a.to_string() +
      "\": take a lower degree, smaller coefficients or a smaller "
      "projection_std");
}

}  // namespace

double score_moment(int power, std::int64_t width) {
  require_exact(power >= 0, "power " + std::to_string(power) + " < 0");
  check_width(width);
  if (power % 2 != 0) return 0;
  double moment = 1;
  for (int i = 0; i < power / 2; ++i) {
    moment *= (2.0 * i + 1) * (1 + 2.0 * i / static_cast<double>(width));
    if (std::isfinite(moment)) continue;
    throw std::overflow_error("[theory] the moment of power " +
                              std::to_string(power) +
                              " is beyond the range of double");
  }
  return moment;
}

double expected_weight_sq(const Activation& activation,
                          const Setting& setting) {
  return expected_sq(activation, setting, {"A", false, Factor::kOne});
}

double expected_jacobian_sq(const Activation& activation,
                            const Setting& setting) {
  return expected_sq(activation, setting, {"dA/dS", true, Factor::kOne});
}

double expected_query_gradient_sq(const Activation& activation,
                                  const Setting& setting) {
  return expected_sq(activation, setting, {"dA/dQ", true, Factor::kKey});
}

double expected_key_gradient_sq(const Activation& activation,
                                const Setting& setting) {
  return expected_sq(activation, setting, {"dA/dK", true, Factor::kKey});
}

double expected_input_gradient_sq(const Activation& activation,
                                  const Setting& setting) {
  require_exact(
      setting.source == Source::kProjections,
      "dA/dX needs a setting with projections: queries and keys of their "
      "own have no X");
  return expected_sq(activation, setting, {"dA/dX", true, Factor::kInput});
}

}  // namespace polyattn::theory
