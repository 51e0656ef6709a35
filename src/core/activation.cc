// Activation: the canonical text and the values. The parser is in formula.cc.
#include "polyattn/activation.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace polyattn {
namespace {

// Largest numerator and denominator looked for.
constexpr int kMaxRatio = 1000;
// A gain whose decimal has at most this many characters is shown as typed.
constexpr std::size_t kShortDecimal = 5;

// The shortest decimal that reads back as the same double.
std::string decimal(double value) {
  std::array<char, 32> buffer;
  const auto result =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

// number*unit; an empty unit stands for 1.
std::string times(const std::string& number, std::string_view unit) {
  if (unit.empty()) return number;
  if (number == "1") return std::string(unit);
  return number + "*" + std::string(unit);
}

// p*unit/q with p/q exactly equal to `value`, or an empty string. The parser
// computes the same quotient, so this reads back exactly.
std::string ratio(double value, std::string_view unit) {
  if (!(value < kMaxRatio)) return {};
  for (int q = 2; q <= kMaxRatio; ++q) {
    const double p = std::round(value * q);
    if (p >= 1 && p <= kMaxRatio && p / q == value) {
      return times(decimal(p), unit) + "/" + std::to_string(q);
    }
  }
  return {};
}

// For value > 0: whichever of value*unit and p*unit/q is shorter.
std::string scaled(double value, std::string_view unit) {
  const std::string plain = times(decimal(value), unit);
  const std::string quotient = ratio(value, unit);
  return !quotient.empty() && quotient.size() < plain.size() ? quotient : plain;
}

std::string power_text(std::string_view base, int power) {
  std::string text(base);
  return power == 1 ? text : text + "^" + std::to_string(power);
}

std::string polynomial_text(const Activation& a) {
  std::string text;
  bool single = true;
  for (int k = 0; k <= a.degree; ++k) {
    const double c = a.coefficient[k];
    if (c == 0) continue;
    single = text.empty();
    text += single ? (c < 0 ? "-" : "") : (c < 0 ? " - " : " + ");
    text += scaled(std::abs(c), k == 0 ? "" : power_text("x", k));
  }
  const bool whole = single || a.divisor == Divisor::kOne;
  return whole ? text : std::string("(").append(text).append(")");
}

std::string function_text(const Activation& a) {
  const std::string unit = a.kind == ActivationKind::kRelu
                               ? power_text("relu", a.degree)
                           : a.log_n_bias ? "sigmoid"
                                          : "sigmoid(x)";
  const double size = std::abs(a.gain);
  const std::string number = decimal(size);
  std::string text = a.gain < 0 ? "-" : "";
  text +=
      number.size() <= kShortDecimal ? times(number, unit) : scaled(size, unit);
  return text;
}

// k (k - 1) .. (k - order + 1): the factor of the derivative of x^k.
double falling(int k, int order) {
  double factor = 1;
  for (int i = 0; i < order; ++i) factor *= k - i;
  return factor;
}

double polynomial(const Activation& a, double x, int order) {
  double sum = 0;
  for (int k = a.degree; k >= order; --k) {
    sum = sum * x + falling(k, order) * a.coefficient[k];
  }
  return sum;
}

double relu(const Activation& a, double x, int order) {
  if (std::isnan(x)) return x;
  if (x <= 0 || order > a.degree) return 0;
  double power = 1;
  for (int k = a.degree; k > order; --k) power *= x;
  return a.gain * falling(a.degree, order) * power;
}

// exp never sees a positive argument, so nothing overflows.
double logistic(double z) {
  if (z >= 0) return 1 / (1 + std::exp(-z));
  const double e = std::exp(z);
  return e / (1 + e);
}

// s' = s(z) s(-z): free of 1 - s, which cancels. s'' = s' (s(-z) - s(z)).
double sigmoid(const Activation& a, double x, double n, int order) {
  const double z = a.log_n_bias ? x - std::log(n) : x;
  if (order == 0) return a.gain * logistic(z);
  const double slope = a.gain * logistic(z) * logistic(-z);
  return order == 1 ? slope : -slope * std::tanh(z / 2);
}

// The weight (order 0), or its first or second derivative.
double derivative(const Activation& a, double x, double n, int order) {
  switch (a.kind) {
    case ActivationKind::kSoftmax:
      return std::exp(x);
    case ActivationKind::kPolynomial:
      return polynomial(a, x, order);
    case ActivationKind::kSigmoid:
      return sigmoid(a, x, n, order);
    case ActivationKind::kRelu:
      return relu(a, x, order);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

std::string Activation::to_string() const {
  if (kind == ActivationKind::kSoftmax) return "softmax";
  const std::string text = kind == ActivationKind::kPolynomial
                               ? polynomial_text(*this)
                               : function_text(*this);
  switch (divisor) {
    case Divisor::kOne:
      return text;
    case Divisor::kSqrtN:
      return text + "/sqrt(N)";
    case Divisor::kN:
      return text + "/N";
    case Divisor::kSum:
      return text + "/sum";
  }
  return text;
}

double Activation::weight(double x, double n) const {
  return derivative(*this, x, n, 0);
}

double Activation::weight_derivative(double x, double n) const {
  return derivative(*this, x, n, 1);
}

double Activation::weight_second_derivative(double x, double n) const {
  return derivative(*this, x, n, 2);
}

double Activation::row_scale(double n) const {
  switch (divisor) {
    case Divisor::kSqrtN:
      return 1 / std::sqrt(n);
    case Divisor::kN:
      return 1 / n;
    case Divisor::kOne:
    case Divisor::kSum:
      return 1;
  }
  return 1;
}

}  // namespace polyattn
