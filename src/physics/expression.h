// Small expressions over coordinates, an unknown and its derivatives.
//
//   u_t + beta*u_x = 0         exp(-(x - pi)^2 / 2)
//
//   equation    expression [ "=" expression ]      the left side less the right
//   expression  term { ("+" | "-") term }
//   term        factor { ("*" | "/") factor }
//   factor      ("+" | "-") factor | power
//   power       atom [ "^" factor ]                -x^2 is -(x^2)
//   atom        number | name | function "(" expression ")" | "(" expression
//   ")"
//
// Names are pi, the coordinates, the parameters, the unknown, and its
// derivatives: u_xt is that of u by x and t. Functions are sin, cos, tan, sinh,
// cosh, tanh, exp, log and sqrt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace polyattn::physics {

// what() holds the message, the text and a caret under the offending column, on
// three lines.
class ExpressionError : public std::invalid_argument {
 public:
  ExpressionError(std::string_view text, std::size_t column,
                  std::string_view message);

  // Zero-based column in the text.
  std::size_t column() const { return column_; }

 private:
  std::size_t column_;
};

// What a text may speak of.
struct Names {
  std::vector<std::string> coordinates;  // letters
  std::string unknown;                   // empty: none
  std::map<std::string, double, std::less<>> parameters;
};

// A coordinate, or the unknown and by which coordinates it is differentiated,
// in the order of the alphabet: u_tx for u_xt too.
struct Symbol {
  bool is_unknown = false;
  std::string coordinates = {};

  bool operator==(const Symbol&) const = default;
  auto operator<=>(const Symbol&) const = default;
};

enum class Operation : std::uint8_t {
  kNumber,
  kSymbol,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kPower,
  kNegate,
  kSin,
  kCos,
  kTan,
  kSinh,
  kCosh,
  kTanh,
  kExp,
  kLog,
  kSqrt,
};

struct Step {
  Operation operation = Operation::kNumber;
  double number = 0;       // kNumber
  std::size_t symbol = 0;  // kSymbol
};

// Steps of a stack machine: operands come before what is done with them.
struct Expression {
  std::string text;
  std::vector<Step> steps;
  std::vector<Symbol> symbols;  // each once
};

inline constexpr std::size_t kLongestExpression = 1000;
inline constexpr std::size_t kHighestOrder = 4;

// Throw ExpressionError.
Expression parse_expression(std::string_view text, const Names& names);
Expression parse_equation(std::string_view text, const Names& names);

// Of numbers and parameters alone, and finite.
double parse_constant(std::string_view text, const Names& names);

// "t = 0".
struct Place {
  std::string coordinate;
  double value = 0;
};
Place parse_place(std::string_view text, const Names& names);

// Whether a word is pi or a function.
bool is_reserved(std::string_view word);

}  // namespace polyattn::physics
