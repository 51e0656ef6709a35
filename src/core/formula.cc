// Activation::parse: recursive descent over the grammar in activation.h. Every
// rule returns the polynomial it stands for, already expanded, so there is no
// syntax tree. Printing and evaluation are in activation.cc.
#include <algorithm>
#include <cmath>

#include "core/formula_lexer.h"
#include "polyattn/activation.h"

namespace polyattn {
namespace {

// Both keep hostile input cheap; no formula that a person types comes near.
constexpr std::size_t kMaxLength = 1000;
constexpr int kMaxDepth = 64;

// Messages that more than one place needs.
constexpr std::string_view kSoftmaxAlone =
    "softmax stands alone: no argument, factor or divisor";
constexpr std::string_view kExpAlone = "exp occurs only as exp/sum";
constexpr std::string_view kFunctionAlone =
    "sigmoid and relu take one number in front and divisors behind, as in "
    "0.5*relu^2/N";
constexpr std::string_view kFunctionOfX =
    "the argument of a function is x alone";
constexpr std::string_view kDividesOnly =
    "N and sum may only divide the whole weight, as in x/N";
constexpr std::string_view kDividesWhole =
    "sqrt(N), N and sum divide the whole weight: write them last, as in "
    "(1 + x)/N";
constexpr std::string_view kRootOfN =
    "sqrt(N), as a divisor, is the only root: write others as numbers";
constexpr std::string_view kDegreeLimit =
    "powers, and the degree of a polynomial, are at most 8";
static_assert(kMaxDegree == 8, "the messages above say 8");

using Coefficients = std::array<double, kMaxDegree + 1>;

int degree_of(const Coefficients& c) {
  int degree = kMaxDegree;
  while (degree > 0 && c[degree] == 0) --degree;
  return degree;
}

// Copying a parser is how it looks ahead. The rules return their coefficients
// expanded, in the order of the grammar.
class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) { advance(); }

  Activation formula() {
    Activation a;
    if (is(kEnd)) fail("the formula is empty");
    if (softmax()) return a;
    a.divisor = Divisor::kOne;
    a.kind = kind_ahead();
    const bool polynomial = a.kind == ActivationKind::kPolynomial;
    bool single = true;
    Coefficients c = polynomial ? sum(single) : function(a);
    divisors(a, c, single);
    if (std::ranges::all_of(c, [](double v) { return v == 0; })) {
      fail_at(0, "this weight is zero for every x");
    }
    if (polynomial) {
      a.degree = degree_of(c);
      a.coefficient = c;
    } else {
      a.gain = c[0];
    }
    return a;
  }

 private:
  bool softmax() {
    const std::size_t column = token_.column;
    if (accept("exp")) {
      if (accept("/") && accept("sum") && is(kEnd)) return true;
      fail_at(column, kExpAlone);
    }
    if (!accept("softmax")) return false;
    if (!is(kEnd)) fail(kSoftmaxAlone);
    return true;
  }

  ActivationKind kind_ahead() const {
    Parser ahead = *this;
    ahead.sign();
    if (ahead.accept(kNumber)) ahead.accept("*");
    if (ahead.is("sigmoid")) return ActivationKind::kSigmoid;
    if (ahead.is("relu")) return ActivationKind::kRelu;
    return ActivationKind::kPolynomial;
  }

  // The gain of a sigmoid or relu, as a polynomial of degree 0.
  Coefficients function(Activation& a) {
    Coefficients gain{sign()};
    if (is(kNumber)) {
      gain[0] *= token_.value;
      advance();
      accept("*");
    }
    advance();
    const bool argument = accept("(");
    if (argument) {
      expect("x", kFunctionOfX);
      close(kFunctionOfX);
    }
    if (a.kind == ActivationKind::kSigmoid) {
      if (is("^")) fail("sigmoid takes no power");
      a.log_n_bias = !argument;
      return gain;
    }
    a.degree = 1;
    if (accept("^")) {
      const std::size_t column = token_.column;
      a.degree = exponent("the power of relu goes from 1 to 8");
      if (a.degree == 0) fail_at(column, "the power of relu goes from 1 to 8");
    }
    return gain;
  }

  void divisors(Activation& a, Coefficients& c, bool single) {
    while (is("/")) {
      const std::size_t slash = token_.column;
      if (!row_divisor_ahead()) {
        c = quotient(c);
        continue;
      }
      if (!single) not_whole(slash);
      advance();
      if (a.divisor != Divisor::kOne) {
        fail("only one of sqrt(N), N and sum may divide");
      }
      a.divisor = row_divisor();
    }
    if (is(kEnd)) return;
    if (is(")")) fail("no parenthesis is open here");
    if (a.divisor != Divisor::kOne) fail(kDividesWhole);
    if (a.kind != ActivationKind::kPolynomial) fail(kFunctionAlone);
    unexpected();
  }

  bool row_divisor_ahead() const {
    Parser ahead = *this;
    ahead.advance();
    return ahead.is("N") || ahead.is("sqrt") || ahead.is("sum");
  }

  Divisor row_divisor() {
    if (accept("N")) return Divisor::kN;
    if (accept("sum")) return Divisor::kSum;
    advance();
    expect("(", "a root is written sqrt(N)");
    expect("N", kRootOfN);
    close(kRootOfN);
    return Divisor::kSqrtN;
  }

  // Sets `single` to whether there is one term only.
  Coefficients sum(bool& single) {
    Coefficients total{};
    single = true;
    for (bool first = true;; first = false) {
      if (!first && !is("+") && !is("-")) return total;
      const std::size_t column = token_.column;
      const double factor = sign();
      const Coefficients c = term();
      for (std::size_t k = 0; k < c.size(); ++k) total[k] += factor * c[k];
      total = checked(total, column);
      single = first;
    }
  }

  Coefficients term() {
    Coefficients result = power();
    for (;;) {
      const std::size_t column = token_.column;
      if (accept("*") || is("x") || is("(")) {
        result = product(result, power(), column);
      } else if (is("/") && !row_divisor_ahead()) {
        result = quotient(result);
      } else {
        return result;
      }
    }
  }

  Coefficients power() {
    const Coefficients base = atom();
    if (!accept("^")) return base;
    const std::size_t column = token_.column;
    const int n = exponent(kDegreeLimit);
    Coefficients result{1};
    for (int i = 0; i < n; ++i) result = product(result, base, column);
    return result;
  }

  Coefficients atom() {
    if (is(kNumber)) {
      const double value = token_.value;
      advance();
      return {value};
    }
    if (accept("x")) return {0, 1};
    if (!is("(")) unexpected_atom();
    if (++depth_ > kMaxDepth) fail("parentheses are nested too deeply");
    advance();
    bool single;
    const Coefficients inner = sum(single);
    if (is("/")) fail(kDividesWhole);
    if (!is(")") && !is(kEnd)) unexpected();
    close({});
    --depth_;
    return inner;
  }

  int exponent(std::string_view limit) {
    if (is("-")) fail("a power cannot be negative");
    if (!is(kNumber) || !std::ranges::all_of(token_.text, is_digit)) {
      fail("a power is a whole number, as in x^3");
    }
    if (token_.value > kMaxDegree) fail(limit);
    const int n = static_cast<int>(token_.value);
    advance();
    return n;
  }

  // The factor that an optional sign stands for.
  double sign() {
    if (accept("-")) return -1;
    accept("+");
    return 1;
  }

  // At a slash that a number must follow.
  Coefficients quotient(Coefficients c) {
    advance();
    if (!is(kNumber)) fail("only a number, sqrt(N), N or sum may divide");
    if (token_.value == 0) fail("division by zero");
    for (double& v : c) v /= token_.value;
    c = checked(c, token_.column);
    advance();
    return c;
  }

  Coefficients product(const Coefficients& a, const Coefficients& b,
                       std::size_t column) const {
    const int a_degree = degree_of(a), b_degree = degree_of(b);
    if (a_degree + b_degree > kMaxDegree) fail_at(column, kDegreeLimit);
    Coefficients c{};
    for (int i = 0; i <= a_degree; ++i) {
      for (int j = 0; j <= b_degree; ++j) c[i + j] += a[i] * b[j];
    }
    return checked(c, column);
  }

  // Refuses what has overflowed, and leaves one kind of zero.
  Coefficients checked(Coefficients c, std::size_t column) const {
    for (double& v : c) {
      if (!std::isfinite(v)) fail_at(column, "a coefficient overflows here");
      if (v == 0) v = 0;
    }
    return c;
  }

  bool is(std::string_view name) const { return token_.name == name; }
  void advance() { token_ = lexer_.next(); }
  bool accept(std::string_view name) {
    const bool found = is(name);
    if (found) advance();
    return found;
  }
  void expect(std::string_view name, std::string_view message) {
    if (!accept(name)) fail(message);
  }
  void close(std::string_view message) {
    if (is(kEnd)) fail("a closing parenthesis is missing");
    expect(")", message);
  }

  [[noreturn]] void fail(std::string_view message) const {
    fail_at(token_.column, message);
  }
  [[noreturn]] void fail_at(std::size_t column,
                            std::string_view message) const {
    throw FormulaError(lexer_.text(), column, message);
  }

  // For `1 + x/N`: `slash` is the column where the parenthesis should close.
  [[noreturn]] void not_whole(std::size_t slash) {
    const std::string_view weight = lexer_.text().substr(0, slash);
    advance();
    const char* divisor = is("N") ? "N" : is("sum") ? "sum" : "sqrt(N)";
    const auto end =
        std::ranges::find_if_not(weight.rbegin(), weight.rend(), is_space)
            .base();
    fail_at(slash, "a divisor of the row divides the whole weight: write (" +
                       printable({weight.begin(), end}) + ")/" + divisor);
  }

  [[noreturn]] void unexpected_atom() const {
    if (is(kEnd)) fail("the formula ends where a term should follow");
    if (is("*")) fail("expected a number, x or ( here; a power is written ^");
    if (is("sigmoid") || is("relu")) fail(kFunctionAlone);
    if (is("N") || is("sum")) fail(kDividesOnly);
    if (is("sqrt")) fail(kRootOfN);
    if (is("softmax")) fail(kSoftmaxAlone);
    if (is("exp")) fail(kExpAlone);
    fail("expected a number, x or ( here");
  }

  // After a complete term.
  [[noreturn]] void unexpected() const {
    if (is(kNumber)) fail("write * or ^ before this number");
    if (is("^")) fail("a power follows x, a number or ), as in (x^2)^3");
    unexpected_atom();
  }

  Lexer lexer_;
  Token token_;
  int depth_ = 0;
};

std::string describe(std::string_view formula, std::size_t column,
                     std::string_view message) {
  return "[formula] " + std::string(message) + "\n" + printable(formula) +
         "\n" + std::string(std::min(column, formula.size()), ' ') + "^";
}

}  // namespace

FormulaError::FormulaError(std::string_view formula, std::size_t column,
                           std::string_view message)
    : std::invalid_argument(describe(formula, column, message)),
      column_(column) {}

Activation Activation::parse(std::string_view formula) {
  if (formula.size() > kMaxLength) {
    throw FormulaError(formula.substr(0, kMaxLength), kMaxLength,
                       "the formula is longer than 1000 characters");
  }
  return Parser(formula).formula();
}

}  // namespace polyattn
