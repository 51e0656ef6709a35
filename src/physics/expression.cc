#include "physics/expression.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numbers>
#include <system_error>

#include "physics/evaluate.h"
#include "train/run/suggest.h"

namespace polyattn::physics {
namespace {

constexpr std::size_t kDeepest = 50;
// Of a text that is too long.
constexpr std::size_t kShown = 60;

constexpr std::array<std::pair<std::string_view, Operation>, 9> kFunctions = {{
    {"sin", Operation::kSin},
    {"cos", Operation::kCos},
    {"tan", Operation::kTan},
    {"sinh", Operation::kSinh},
    {"cosh", Operation::kCosh},
    {"tanh", Operation::kTanh},
    {"exp", Operation::kExp},
    {"log", Operation::kLog},
    {"sqrt", Operation::kSqrt},
}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// One column per byte, so that the caret stays in place.
std::string printable(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c < ' ' || c > '~') c = '?';
  }
  return result;
}

class Parser {
 public:
  Parser(std::string_view text, const Names& names)
      : text_(text), names_(names) {
    if (text.size() > kLongestExpression) {
      throw ExpressionError(
          text.substr(0, kShown), kShown,
          fmt::format("more than {} characters", kLongestExpression));
    }
    expression_.text = text;
  }

  void expression();
  void equation();
  // The coordinate in front of "=".
  std::string place();
  Expression finish();

 private:
  [[noreturn]] void fail(std::size_t column, std::string_view message) const {
    throw ExpressionError(text_, column, message);
  }

  void skip_spaces() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  char peek() {
    skip_spaces();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (at_ >= text_.size() || peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  void add(Operation operation) { expression_.steps.push_back({operation}); }
  void add_symbol(Symbol symbol);

  void term();
  void factor();
  void atom();
  void number();
  void word();
  void in_brackets();
  bool derivative(std::string_view name, std::size_t column);
  [[noreturn]] void unknown_name(std::string_view name,
                                 std::size_t column) const;
  std::string_view read_word();

  std::string_view text_;
  const Names& names_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  Expression expression_;
};

void Parser::add_symbol(Symbol symbol) {
  auto& all = expression_.symbols;
  const auto found = std::find(all.begin(), all.end(), symbol);
  const auto index = static_cast<std::size_t>(found - all.begin());
  if (found == all.end()) all.push_back(std::move(symbol));
  expression_.steps.push_back({Operation::kSymbol, 0, index});
}

void Parser::expression() {
  term();
  while (peek() == '+' || peek() == '-') {
    const Operation operation =
        text_[at_++] == '+' ? Operation::kAdd : Operation::kSubtract;
    term();
    add(operation);
  }
}

void Parser::equation() {
  expression();
  if (!take('=')) return;
  expression();
  add(Operation::kSubtract);
}

std::string Parser::place() {
  skip_spaces();
  const std::size_t column = at_;
  const std::string name(read_word());
  const auto& all = names_.coordinates;
  if (std::find(all.begin(), all.end(), name) == all.end()) {
    fail(column,
         fmt::format("no coordinate: there are {}", fmt::join(all, ", ")));
  }
  if (!take('=')) {
    skip_spaces();
    fail(at_, fmt::format("expected =, as in {} = 0", name));
  }
  return name;
}

void Parser::term() {
  factor();
  while (peek() == '*' || peek() == '/') {
    const Operation operation =
        text_[at_++] == '*' ? Operation::kMultiply : Operation::kDivide;
    factor();
    add(operation);
  }
}

void Parser::factor() {
  if (++depth_ > kDeepest) {
    fail(at_, fmt::format("nested more than {} deep", kDeepest));
  }
  if (take('-')) {
    factor();
    add(Operation::kNegate);
  } else if (take('+')) {
    factor();
  } else {
    atom();
    if (take('^')) {
      factor();
      add(Operation::kPower);
    }
  }
  --depth_;
}

void Parser::in_brackets() {
  const std::size_t opened = at_++;
  expression();
  if (!take(')')) {
    skip_spaces();
    if (at_ == text_.size()) fail(opened, "this bracket is not closed");
    fail(at_, "expected an operator or )");
  }
}

void Parser::atom() {
  const char c = peek();
  if (c == '(') {
    in_brackets();
  } else if (is_digit(c) || c == '.') {
    number();
  } else if (is_letter(c)) {
    word();
  } else if (at_ == text_.size()) {
    fail(at_, "expected a number, a name or (, but the text ends");
  } else {
    fail(at_, "expected a number, a name or (");
  }
}

void Parser::number() {
  const char* const begin = text_.data() + at_;
  double value = 0;
  const auto [end, error] =
      std::from_chars(begin, text_.data() + text_.size(), value);
  if (error != std::errc() || !std::isfinite(value)) {
    fail(at_, "this number is no finite double");
  }
  at_ += static_cast<std::size_t>(end - begin);
  if (at_ < text_.size() && is_letter(text_[at_])) {
    fail(at_, "a product is written with *");
  }
  expression_.steps.push_back({Operation::kNumber, value});
}

std::string_view Parser::read_word() {
  const std::size_t begin = at_;
  while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_])))
    ++at_;
  return text_.substr(begin, at_ - begin);
}

void Parser::word() {
  const std::size_t column = at_;
  const std::string_view name = read_word();
  for (const auto& [function, operation] : kFunctions) {
    if (name != function) continue;
    if (peek() != '(') fail(at_, fmt::format("expected ( after {}", name));
    in_brackets();
    return add(operation);
  }
  if (name == "pi") {
    expression_.steps.push_back({Operation::kNumber, std::numbers::pi});
  } else if (const auto parameter = names_.parameters.find(name);
             parameter != names_.parameters.end()) {
    expression_.steps.push_back({Operation::kNumber, parameter->second});
  } else if (std::find(names_.coordinates.begin(), names_.coordinates.end(),
                       name) != names_.coordinates.end()) {
    add_symbol({false, std::string(name)});
  } else if (!derivative(name, column)) {
    unknown_name(name, column);
  }
}

// The unknown itself too.
bool Parser::derivative(std::string_view name, std::size_t column) {
  const std::string& unknown = names_.unknown;
  if (unknown.empty() || !name.starts_with(unknown)) return false;
  std::string by(name.substr(unknown.size()));
  if (!by.empty()) {
    if (by.front() != '_' || by.size() == 1) return false;
    by.erase(0, 1);
  }
  if (by.size() > kHighestOrder) {
    fail(column, fmt::format("a derivative of order {}, {} at most", by.size(),
                             kHighestOrder));
  }
  for (std::size_t i = 0; i < by.size(); ++i) {
    const auto& all = names_.coordinates;
    if (std::find(all.begin(), all.end(), std::string(1, by[i])) == all.end()) {
      fail(column + unknown.size() + 1 + i,
           fmt::format("a derivative by '{}', which is no coordinate: there "
                       "are {}",
                       by[i], fmt::join(all, ", ")));
    }
  }
  std::sort(by.begin(), by.end());
  add_symbol({true, by});
  return true;
}

void Parser::unknown_name(std::string_view name, std::size_t column) const {
  std::vector<std::string_view> known(names_.coordinates.begin(),
                                      names_.coordinates.end());
  for (const auto& [parameter, value] : names_.parameters)
    known.push_back(parameter);
  if (!names_.unknown.empty()) known.push_back(names_.unknown);
  known.emplace_back("pi");
  for (const auto& [function, operation] : kFunctions)
    known.push_back(function);
  const std::string text =
      fmt::format("unknown name '{}'", printable(name.substr(0, 32)));
  if (const auto near = run::nearest(name, known)) {
    fail(column, fmt::format("{}, did you mean {}?", text, *near));
  }
  fail(column, fmt::format("{}: there are {}", text, fmt::join(known, ", ")));
}

Expression Parser::finish() {
  skip_spaces();
  if (at_ < text_.size()) {
    fail(at_, text_[at_] == ')'   ? "no bracket is open here"
              : text_[at_] == '=' ? "there is no = here"
                                  : "expected an operator");
  }
  return std::move(expression_);
}

double constant_of(const Expression& expression) {
  const double value = evaluate<double>(expression, {});
  if (!std::isfinite(value)) {
    throw ExpressionError(expression.text, 0, "the value is not finite");
  }
  return value;
}

Names constants_of(const Names& names) {
  return {.coordinates = {}, .unknown = {}, .parameters = names.parameters};
}

}  // namespace

ExpressionError::ExpressionError(std::string_view text, std::size_t column,
                                 std::string_view message)
    : std::invalid_argument(fmt::format("{}\n{}\n{}^", message, printable(text),
                                        std::string(column, ' '))),
      column_(column) {}

Expression parse_expression(std::string_view text, const Names& names) {
  Parser parser(text, names);
  parser.expression();
  return parser.finish();
}

Expression parse_equation(std::string_view text, const Names& names) {
  Parser parser(text, names);
  parser.equation();
  return parser.finish();
}

double parse_constant(std::string_view text, const Names& names) {
  return constant_of(parse_expression(text, constants_of(names)));
}

Place parse_place(std::string_view text, const Names& names) {
  Names known = names;
  known.unknown.clear();
  Parser parser(text, known);
  Place place{.coordinate = parser.place()};
  parser.expression();
  const Expression expression = parser.finish();
  if (!expression.symbols.empty()) {
    throw ExpressionError(text, text.find('=') + 1,
                          "a place is a number: no coordinate stands here");
  }
  place.value = constant_of(expression);
  return place;
}

bool is_reserved(std::string_view word) {
  return word == "pi" ||
         std::any_of(kFunctions.begin(), kFunctions.end(),
                     [&](const auto& entry) { return entry.first == word; });
}

}  // namespace polyattn::physics
