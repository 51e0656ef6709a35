// Activation::parse: recursive descent over the grammar in activation.h. Every
// rule returns the polynomial it stands for, already expanded, so there is no
// syntax tree. Printing and evaluation are in activation.cc.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <numeric>
#include <system_error>
#include <vector>

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

constexpr std::string_view kWords[] = {"x",    "softmax", "exp", "sum",
                                       "relu", "sigmoid", "sqrt"};
constexpr std::string_view kNumber = "number";
constexpr std::string_view kEnd = "end";

struct Token {
  // kNumber, kEnd, or the word or symbol itself, words in lower case but N.
  std::string_view name;
  std::size_t column = 0;
  std::string_view text;
  double value = 0;  // of a number
};

// The <cctype> functions depend on the locale.
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
bool is_letter(char c) {
  return c == '_' || (to_lower(c) >= 'a' && to_lower(c) <= 'z');
}

// One column per byte, so that a caret below stays in place.
std::string printable(std::string_view text) {
  std::string result(text);
  std::replace_if(
      result.begin(), result.end(), [](char c) { return c < ' ' || c > '~'; },
      '?');
  return result;
}

// Levenshtein distance.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (const char c : a) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 1; j < row.size(); ++j) {
      const std::size_t change = diagonal + (c == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string unknown_word(std::string_view word, std::string_view lower) {
  if (lower == "n") return "the number of keys is written N, not n";
  const std::string text = "unknown word '" + std::string(word.substr(0, 32));
  const std::string_view nearest = std::ranges::min(
      kWords, {}, [&](std::string_view w) { return distance(lower, w); });
  // Beyond one slip in three letters a guess would only mislead.
  if (3 * distance(lower, nearest) <= lower.size()) {
    return text + "', did you mean " + std::string(nearest) + "?";
  }
  return text + "': a formula knows x, N, softmax, exp/sum, sigmoid and relu";
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::string_view text() const { return text_; }

  Token next() {
    while (position_ < text_.size() && is_space(text_[position_])) ++position_;
    const std::string_view rest = text_.substr(position_);
    Token token{kEnd, position_, rest, 0};
    if (rest.empty()) return token;
    const std::size_t length = is_digit(rest[0]) || rest[0] == '.'
                                   ? read_number(token)
                               : is_letter(rest[0]) ? read_word(token)
                                                    : read_symbol(token);
    token.text = rest.substr(0, length);
    position_ += length;
    return token;
  }

 private:
  [[noreturn]] void fail(const Token& token, std::string_view message) const {
    throw FormulaError(text_, token.column, message);
  }

  std::size_t read_number(Token& token) const {
    token.name = kNumber;
    const char* begin = token.text.data();
    const auto [end, error] =
        std::from_chars(begin, begin + token.text.size(), token.value);
    if (error == std::errc::result_out_of_range) {
      fail(token, "this number is outside the range of a double");
    }
    if (error != std::errc{}) fail(token, "a number needs a digit");
    return static_cast<std::size_t>(end - begin);
  }

  std::size_t read_word(Token& token) const {
    const auto end = std::ranges::find_if_not(token.text, is_letter);
    const std::string_view word(token.text.begin(), end);
    std::string lower(word);
    std::ranges::transform(lower, lower.begin(), to_lower);
    const auto known = std::ranges::find(kWords, lower);
    if (word != "N" && known == std::end(kWords)) {
      fail(token, unknown_word(word, lower));
    }
    token.name = word == "N" ? word : *known;
    return word.size();
  }

  std::size_t read_symbol(Token& token) const {
    token.name = token.text.substr(0, 1);
    if (std::string_view("+-*/^()").find(token.name) ==
        std::string_view::npos) {
      fail(token, "this character has no meaning in a formula");
    }
    return 1;
  }

  std::string_view text_;
  std::size_t position_ = 0;
};

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
