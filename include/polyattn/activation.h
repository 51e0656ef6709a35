// Activations: what stands between the scores and the weights of attention,
// written as a formula that a person can type.
//
//   softmax   x^3/sqrt(N)   x^3/14   1 + x + x^2/2   x^4/sum   sigmoid relu^2/N
//
// Grammar (white space is free; letters are case-sensitive only for N):
//
//   formula    := "softmax" | "exp" "/" "sum" | weight { "/" divisor }
//   divisor    := number | "sqrt" "(" "N" ")" | "N" | "sum"
//   weight     := [ sign ] [ number [ "*" ] ] ( sigmoid | relu ) | polynomial
//   sigmoid    := "sigmoid" [ "(" "x" ")" ]
//   relu       := "relu" [ "(" "x" ")" ] [ "^" integer ]
//   polynomial := [ sign ] term { sign term }
//   term       := power { "*" power | group | "/" number }
//   power      := ( number | base ) [ "^" integer ]
//   group      := base [ "^" integer ]
//   base       := "x" | "(" polynomial ")"
//
// `*` may be left out before x and (, but not before a number: 2x, never x2.
// Products and quotients go from left to right: 1/2x is x/2. Integers are at
// most 8. One of sqrt(N), N and sum may occur, once, and divides the whole
// weight: a polynomial of several terms then needs parentheses,
// (1 + x)/sqrt(N).
// N is the number of keys that the row may see. `sum` is the sum over the row
// of the absolute weights, so softmax is exp/sum. Plain `sigmoid` is
// sigmoid(x - log N), the bias its authors advise; `sigmoid(x)` has no bias.
#pragma once

#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace polyattn {

inline constexpr int kMaxDegree = 8;

// Bad formula text. what() holds the message, the formula and a caret under
// the offending column, on three lines.
class FormulaError : public std::invalid_argument {
 public:
  FormulaError(std::string_view formula, std::size_t column,
               std::string_view message);

  // Zero-based column in the formula.
  std::size_t column() const { return column_; }

 private:
  std::size_t column_;
};

enum class ActivationKind { kSoftmax, kPolynomial, kSigmoid, kRelu };
enum class Divisor { kOne, kSqrtN, kN, kSum };

// A parsed formula: A_ij = weight(s_ij) / divisor_i.
struct Activation {
  ActivationKind kind = ActivationKind::kSoftmax;
  Divisor divisor = Divisor::kSum;
  // Polynomial: its degree. Relu: its power. Otherwise 0.
  int degree = 0;
  // Polynomial only: coefficients of x^0 .. x^degree; zero above degree.
  std::array<double, kMaxDegree + 1> coefficient{};
  // Sigmoid and relu only: the constant factor. Otherwise 1.
  double gain = 1;
  // Sigmoid only: subtract log(n) from the score.
  bool log_n_bias = false;

  // Throws FormulaError.
  static Activation parse(std::string_view formula);

  // The canonical formula: parse(to_string()) equals *this exactly.
  std::string to_string() const;

  // The weight before the divisor, at score x in a row that sees n keys, and
  // its derivatives with respect to x. For softmax: exp(x). relu'(0) is 0, and
  // so is the second derivative of relu^2 there.
  double weight(double x, double n) const;
  double weight_derivative(double x, double n) const;
  double weight_second_derivative(double x, double n) const;

  // 1, 1/sqrt(n) or 1/n. For kSum: 1, because the sum is known only to the row.
  double row_scale(double n) const;

  bool operator==(const Activation&) const = default;
};

}  // namespace polyattn
