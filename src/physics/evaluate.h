// The value of an expression, for any kind of number.
#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include "physics/expression.h"

namespace polyattn::physics {

template <typename T>
T apply_function(Operation operation, const T& a) {
  using std::cos, std::cosh, std::exp, std::log, std::sin, std::sinh, std::sqrt,
      std::tan, std::tanh;
  switch (operation) {
    case Operation::kNegate:
      return -a;
    case Operation::kSin:
      return sin(a);
    case Operation::kCos:
      return cos(a);
    case Operation::kTan:
      return tan(a);
    case Operation::kSinh:
      return sinh(a);
    case Operation::kCosh:
      return cosh(a);
    case Operation::kTanh:
      return tanh(a);
    case Operation::kExp:
      return exp(a);
    case Operation::kLog:
      return log(a);
    default:
      return sqrt(a);
  }
}

template <typename T>
T apply_binary(Operation operation, const T& a, const T& b) {
  using std::pow;
  switch (operation) {
    case Operation::kAdd:
      return a + b;
    case Operation::kSubtract:
      return a - b;
    case Operation::kMultiply:
      return a * b;
    case Operation::kDivide:
      return a / b;
    default:
      return pow(a, b);
  }
}

// `symbols` are the values of expression.symbols. T is made of a double, has
// the four operations, and functions by the names of std.
template <typename T>
T evaluate(const Expression& expression, const std::vector<T>& symbols) {
  std::vector<T> stack;
  for (const Step& step : expression.steps) {
    if (step.operation == Operation::kNumber) {
      stack.push_back(static_cast<T>(step.number));
    } else if (step.operation == Operation::kSymbol) {
      stack.push_back(symbols[step.symbol]);
    } else if (step.operation >= Operation::kNegate) {
      stack.back() = apply_function(step.operation, stack.back());
    } else {
      const T right = std::move(stack.back());
      stack.pop_back();
      stack.back() = apply_binary(step.operation, stack.back(), right);
    }
  }
  return std::move(stack.back());
}

}  // namespace polyattn::physics
