// With f = phi^2 (or phi'^2) and c_i = 1/divisor_i^2 the squared norm is
// sum_ij c_i f(s_ij). Two scores are independent unless they share a row or a
// column, so its variance is
//
//   V0 sum_i c_i^2 n_i  +  V1 (sum_i c_i^2 n_i (n_i - 1)
//                              + sum_{i != k} c_i c_k |V(i) and V(k)|)
//
//   V0 = Var f(s)          V1 = Var E[f(s) | q] = Var E[f(s) | k]
//
// and given q the score is N(0, |q|^2 / D): E[s^(2a) | q] = (2a-1)!!
// (|q|^2/D)^a.
#include "theory/variance.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <vector>

namespace polyattn::theory {
namespace {

// f: coefficients of s^0, s^1, ...
using Polynomial = std::vector<double>;

Polynomial squared(const Activation& a, bool derivative) {
  const std::size_t order = derivative ? 1 : 0;
  Polynomial b(kMaxDegree + 1);
  for (std::size_t i = 0; i + order < b.size(); ++i) {
    const double factor = derivative ? static_cast<double>(i + 1) : 1;
    b[i] = a.coefficient[i + order] * factor;
  }
  Polynomial f(2 * b.size());
  for (std::size_t i = 0; i < b.size(); ++i) {
    for (std::size_t j = 0; j < b.size(); ++j) f[i + j] += b[i] * b[j];
  }
  return f;
}

double odd_factorial(std::size_t even) {  // (even - 1)!!
  double product = 1;
  for (std::size_t i = 1; i < even; i += 2) product *= static_cast<double>(i);
  return product;
}

// sum_ab f_a f_b E[s^(a+b)], or with conditional means in place of the powers.
double second_moment(const Polynomial& f, std::int64_t width, bool given_q) {
  double sum = 0;
  for (std::size_t a = 0; a < f.size(); ++a) {
    for (std::size_t b = a % 2; b < f.size(); b += 2) {
      if (f[a] == 0 || f[b] == 0 || (given_q && a % 2 != 0)) continue;
      double moment = score_moment(static_cast<int>(a + b), width);
      if (given_q) {
        moment *= odd_factorial(a) * odd_factorial(b) / odd_factorial(a + b);
      }
      sum += f[a] * f[b] * moment;
    }
  }
  return sum;
}

struct PairCounts {
  double same = 0;    // what V0 is multiplied by
  double shared = 0;  // what V1 is multiplied by
};

PairCounts pair_counts(const Activation& a, const Setting& s) {
  const auto n = static_cast<double>(s.tokens);
  const auto factor = [&](double keys) {
    const double scale = a.row_scale(keys);
    return scale * scale;
  };
  if (!s.causal) {
    const double c = factor(n) * factor(n);
    return {.same = c * n * n, .shared = c * 2 * n * n * (n - 1)};
  }
  // From the last row on: row i shares its i + 1 keys with each of those below.
  PairCounts counts;
  double below = 0;
  for (double keys = n; keys >= 1; --keys) {
    const double c = factor(keys);
    counts.same += c * c * keys;
    counts.shared += c * c * keys * (keys - 1) + 2 * c * keys * below;
    below += c;
  }
  return counts;
}

double norm_sq_variance(const Activation& a, const Setting& s,
                        bool derivative) {
  expected_weight_sq(a, s);  // checks both
  if (s.source != Source::kQueriesKeys) {
    throw std::invalid_argument(
        "[theory] the exact variance is known for independent queries and "
        "keys only");
  }
  const Polynomial f = squared(a, derivative);
  double mean = 0;
  for (std::size_t i = 0; i < f.size(); i += 2) {
    mean += f[i] * score_moment(static_cast<int>(i), s.width);
  }
  const auto variance = [&](bool given_q) {
    return std::max(0.0, second_moment(f, s.width, given_q) - mean * mean);
  };
  const PairCounts counts = pair_counts(a, s);
  return counts.same * variance(false) + counts.shared * variance(true);
}

}  // namespace

double weight_sq_variance(const Activation& activation,
                          const Setting& setting) {
  return norm_sq_variance(activation, setting, false);
}

double jacobian_sq_variance(const Activation& activation,
                            const Setting& setting) {
  return norm_sq_variance(activation, setting, true);
}

}  // namespace polyattn::theory
