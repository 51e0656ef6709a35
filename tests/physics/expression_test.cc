// Values of expressions, what they speak of, and errors with their column.
#include "physics/expression.h"

#include <gtest/gtest.h>

#include <numbers>

#include "physics/evaluate.h"
#include "support/message_of.h"

namespace polyattn::physics {
namespace {

using test::message_of;

Names names() {
  return {.coordinates = {"x", "t"},
          .unknown = "u",
          .parameters = {{"beta", 50.0}, {"k2", 2.0}}};
}

double constant(std::string_view text) { return parse_constant(text, names()); }

std::string error(std::string_view text) {
  return message_of<ExpressionError>([&] { parse_equation(text, names()); });
}

TEST(Expression, FollowsTheRulesOfArithmetic) {
  EXPECT_EQ(constant("1 + 2*3"), 7);
  EXPECT_EQ(constant("1 - 2 - 3"), -4);
  EXPECT_EQ(constant("24/2/3"), 4);
  EXPECT_EQ(constant("2*(3 + 4)"), 14);
  EXPECT_EQ(constant("-2^2"), -4);
  EXPECT_EQ(constant("2^3^2"), 512);
  EXPECT_EQ(constant("2^-1"), 0.5);
  EXPECT_EQ(constant("- -3"), 3);
  EXPECT_EQ(constant("+3 - +1"), 2);
  EXPECT_EQ(constant(" 1.5e1\t*.2"), 3);
  EXPECT_EQ(constant("k2*beta"), 100);
}

TEST(Expression, KnowsFunctions) {
  EXPECT_EQ(constant("pi"), std::numbers::pi);
  EXPECT_EQ(constant("sin(0.5)"), std::sin(0.5));
  EXPECT_EQ(constant("cos(0.5)"), std::cos(0.5));
  EXPECT_EQ(constant("tan(0.5)"), std::tan(0.5));
  EXPECT_EQ(constant("sinh(0.5)"), std::sinh(0.5));
  EXPECT_EQ(constant("cosh(0.5)"), std::cosh(0.5));
  EXPECT_EQ(constant("tanh (0.5)"), std::tanh(0.5));
  EXPECT_EQ(constant("exp(-(1 + 1))"), std::exp(-2));
  EXPECT_EQ(constant("log(2)"), std::log(2));
  EXPECT_EQ(constant("sqrt(2)"), std::sqrt(2));
}

TEST(Expression, NamesWhatItNeeds) {
  const Expression e = parse_equation("u_tx + u*u_xt = beta*x - u", names());
  const std::vector<Symbol> expected = {{true, "tx"}, {true, ""}, {false, "x"}};
  EXPECT_EQ(e.symbols, expected);
  // u_tx + u u_tx - (50 x - u)
  EXPECT_EQ(evaluate<double>(e, {3, 2, 0.5}), 3 + 2 * 3 - (25 - 2.0));
  EXPECT_EQ(e.text, "u_tx + u*u_xt = beta*x - u");
  const Expression zero = parse_equation("u_t", names());
  EXPECT_EQ(evaluate<double>(zero, {4}), 4);
}

TEST(Expression, PlacesAreCoordinatesAndNumbers) {
  const Place place = parse_place(" x = 2*pi", names());
  EXPECT_EQ(place.coordinate, "x");
  EXPECT_EQ(place.value, 2 * std::numbers::pi);
  const auto refused = [](std::string_view text) {
    return message_of<ExpressionError>([&] { parse_place(text, names()); });
  };
  EXPECT_EQ(refused("y = 0"), "no coordinate: there are x, t\ny = 0\n^");
  EXPECT_EQ(refused("x + 0"), "expected =, as in x = 0\nx + 0\n  ^");
  EXPECT_EQ(refused("x = t"),
            "a place is a number: no coordinate stands here\nx = t\n   ^");
  EXPECT_EQ(refused("x = 1/0"), "the value is not finite\nx = 1/0\n^");
  EXPECT_EQ(refused("x = u"),
            "unknown name 'u': there are x, t, beta, k2, pi, sin, cos, tan, "
            "sinh, cosh, tanh, exp, log, sqrt\nx = u\n    ^");
}

TEST(Expression, ErrorsPointAtTheColumn) {
  EXPECT_EQ(error("u_t + bta*u_x"),
            "unknown name 'bta', did you mean beta?\nu_t + bta*u_x\n      ^");
  EXPECT_EQ(error("u_t + 2*wind"),
            "unknown name 'wind': there are x, t, beta, k2, u, pi, sin, cos, "
            "tan, sinh, cosh, tanh, exp, log, sqrt\nu_t + 2*wind\n        ^");
  EXPECT_EQ(error("u_t + u_xy"),
            "a derivative by 'y', which is no coordinate: there are x, t\n"
            "u_t + u_xy\n         ^");
  EXPECT_EQ(error("u_xxxxx"), "a derivative of order 5, 4 at most\nu_xxxxx\n^");
  EXPECT_EQ(error("u_t + 2x"),
            "a product is written with *\nu_t + 2x\n       ^");
  EXPECT_EQ(error("u_t x"), "expected an operator\nu_t x\n    ^");
  EXPECT_EQ(error("(u_t"), "this bracket is not closed\n(u_t\n^");
  EXPECT_EQ(error("(u_t 2)"), "expected an operator or )\n(u_t 2)\n     ^");
  EXPECT_EQ(error("u_t)"), "no bracket is open here\nu_t)\n   ^");
  EXPECT_EQ(error("u = 1 = 2"), "there is no = here\nu = 1 = 2\n      ^");
  EXPECT_EQ(error("sin x"), "expected ( after sin\nsin x\n    ^");
  EXPECT_EQ(error("u +"),
            "expected a number, a name or (, but the text ends\nu +\n   ^");
  EXPECT_EQ(error("u + *"), "expected a number, a name or (\nu + *\n    ^");
  EXPECT_EQ(error(""),
            "expected a number, a name or (, but the text ends\n\n^");
  EXPECT_EQ(error("1e999"), "this number is no finite double\n1e999\n^");
  EXPECT_EQ(error("u \xc3\xa4"), "expected an operator\nu ??\n  ^");
}

TEST(Expression, HasLimits) {
  EXPECT_TRUE(error(std::string(1000, '(')).starts_with("nested more than 50"));
  EXPECT_TRUE(error(std::string(1000, '-')).starts_with("nested more than 50"));
  EXPECT_TRUE(
      error(std::string(1001, '1')).starts_with("more than 1000 characters"));
  std::string sum = "u";
  while (sum.size() < 990) sum += " + u";
  EXPECT_EQ(parse_equation(sum, names()).symbols.size(), 1U);
}

}  // namespace
}  // namespace polyattn::physics
