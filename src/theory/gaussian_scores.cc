// E phi(s z)^2 for a normal number z is a sum of moments for polynomials and an
// integral otherwise. The trapezoidal rule computes the integrals: for analytic
// functions that vanish at both ends its error falls as exp(-2 pi d / step),
// where 2d is the width of the strip around the real line without a pole or
// excessive growth.
#include "theory/gaussian_scores.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <vector>

#include "theory/expectation.h"

namespace polyattn::theory {
namespace {

// A normal number is beyond this with a probability of 1e-23: nothing, even
// when N^2 multiplies it.
constexpr double kNormalReach = 10;

struct QuadratureNode {
  double score;   // s z
  double weight;  // density of z times the step
};

// exp(-e^x) explodes beyond |Im x| = pi/2 and a sigmoid has poles at pi, so the
// steps of s z must not grow with s.
std::vector<QuadratureNode> normal_nodes(double score_std) {
  const double step = 0.3 / std::max(0.6, score_std);
  const int half = static_cast<int>(kNormalReach / step);
  std::vector<QuadratureNode> nodes;
  for (int k = -half; k <= half; ++k) {
    const double z = k * step;
    nodes.push_back({.score = score_std * z,
                     .weight = step * std::exp(-z * z / 2) /
                               std::sqrt(2 * std::numbers::pi)});
  }
  return nodes;
}

// E phi(x)^2 N^2 / divisor^2 with phi(x) = sum_i (c_i s^i) z^i. Scores of wide
// heads are normal: at this width, to rounding.
double polynomial_weight_sq(Activation a, std::int64_t tokens,
                            double score_std) {
  constexpr std::int64_t kWide = 1'000'000'000'000'000;
  double power = 1;
  for (double& c : a.coefficient) {
    c *= power;
    power *= score_std;
  }
  return expected_weight_sq(a, {.tokens = tokens, .width = kWide});
}

// Half of the scores are negative: half of what the whole power has.
double relu_weight_sq(const Activation& a, std::int64_t tokens,
                      double score_std) {
  Activation power{.kind = ActivationKind::kPolynomial,
                   .divisor = a.divisor,
                   .degree = a.degree};
  power.coefficient[static_cast<std::size_t>(a.degree)] = a.gain;
  return polynomial_weight_sq(power, tokens, score_std) / 2;
}

double sigmoid_weight_sq(const Activation& a, double n, double score_std) {
  double mean = 0;
  for (const QuadratureNode& node : normal_nodes(score_std)) {
    const double weight = n * a.row_scale(n) * a.weight(node.score, n);
    mean += node.weight * weight * weight;
  }
  return mean;
}

// Of a row p with Z = sum_j e^(x_j), by 1/Z^2 = int_0^inf t e^(-tZ) dt, where
// the N scores are independent, and t = e^(-u):
//
//   E p_j^2 = int E[y^2 e^(-y)] (E e^(-y))^(N-1) du,   y = e^(x-u)
//
// and there are N^2 entries. The integrand is 0 to rounding where u is a little
// below the least score, and log N + 18 above the largest.
double softmax_weight_sq(double n, double score_std) {
  constexpr double kStep = 0.25;
  constexpr double kNoWeight = 100;  // exp(-y) is 4e-44
  std::vector<QuadratureNode> nodes = normal_nodes(score_std);
  for (QuadratureNode& node : nodes) node.score = std::exp(node.score);
  const double reach = kNormalReach * score_std;
  double sum = 0;
  for (double u = -reach - 5; u < reach + std::log(n) + 18; u += kStep) {
    const double t = std::exp(-u);
    double own = 0, other = 0;
    for (const QuadratureNode& node : nodes) {
      const double y = t * node.score;
      if (y > kNoWeight) break;
      const double e = node.weight * std::exp(-y);
      own += y * y * e;
      other += e;
    }
    sum += own * std::pow(other, n - 1);
  }
  return std::clamp(n * n * kStep * sum, 1.0, n);
}

}  // namespace

double gaussian_weight_sq(const Activation& activation, std::int64_t tokens,
                          double score_std) {
  const auto n = static_cast<double>(tokens);
  if (activation.kind == ActivationKind::kSoftmax) {
    return softmax_weight_sq(n, score_std);
  }
  if (activation.divisor == Divisor::kSum) {
    throw std::invalid_argument(
        "[theory] no expected norm is known for \"" + activation.to_string() +
        "\": of the formulas with /sum it is known for softmax alone");
  }
  switch (activation.kind) {
    case ActivationKind::kRelu:
      return relu_weight_sq(activation, tokens, score_std);
    case ActivationKind::kSigmoid:
      return sigmoid_weight_sq(activation, n, score_std);
    default:
      return polynomial_weight_sq(activation, tokens, score_std);
  }
}

}  // namespace polyattn::theory
