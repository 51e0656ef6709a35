// Derivatives and loss terms of a field against closed forms, exact solutions
// against their equations.
#include "train/physics_field.h"

#include <numbers>

#include "nn/support.h"
#include "support/message_of.h"
#include "train/run/config.h"

namespace polyattn::train {
namespace physics_field_test {

using physics::parse_problem;
using physics::Problem;
using test::contains;
using test::message_of;

constexpr const char* kProblem = R"toml(title = "Mixed"
coordinates = ["x", "t"]
equation = "u_xt + u^2*u_xx - 3*x*u_t = t"
exact = "x^3*t^2"
[domain]
x = ["0", "2"]
t = ["0", "1"]
[[condition]]
where = "t = 0"
equation = "u = x"
[[condition]]
where = "t = 0"
equation = "u_t = 0"
[[condition]]
where = "x = 2"
equation = "u = t"
[[condition]]
periodic = "x"
)toml";

// u = x^3 t^2 + 1, of sequences of two rows that do not see each other.
struct Made {
  torch::Tensor x, t, rows, u;
};

Made made(const Problem& problem, std::int64_t points) {
  Made m;
  m.rows = grid_points(problem, points).unsqueeze(1).repeat({1, 2, 1});
  m.rows.select(1, 1).select(1, 1).add_(0.25);
  m.rows.requires_grad_();
  m.x = m.rows.select(-1, 0);
  m.t = m.rows.select(-1, 1);
  m.u = m.x.pow(3) * m.t.square() + 1;
  return m;
}

TEST(PhysicsField, GridRunsFasterInTheSecondCoordinate) {
  const Problem problem = parse_problem(kProblem, "mixed");
  const auto points = grid_points(problem, 3);
  const auto expected = torch::tensor({{0.0, 0.0},
                                       {0.0, 0.5},
                                       {0.0, 1.0},
                                       {1.0, 0.0},
                                       {1.0, 0.5},
                                       {1.0, 1.0},
                                       {2.0, 0.0},
                                       {2.0, 0.5},
                                       {2.0, 1.0}},
                                      torch::kDouble);
  EXPECT_TRUE(points.equal(expected));
}

TEST(PhysicsField, ResidualsAreTheirFormulas) {
  const Problem problem = parse_problem(kProblem, "mixed");
  const Made m = made(problem, 4);
  PhysicsField field(problem, m.rows, m.u.unsqueeze(-1));
  const auto expected = 6 * m.x.square() * m.t +
                        m.u.square() * 6 * m.x * m.t.square() -
                        3 * m.x * 2 * m.x.pow(3) * m.t - m.t;
  EXPECT_SAME(field.residual(problem.equation).flatten(0, 1), expected);
  const auto u = m.u.view({4, 4, 2}), x = m.x.view({4, 4, 2}),
             t = m.t.view({4, 4, 2});
  // Initial values of the first rows; of derivatives and edges all rows.
  EXPECT_SAME(field.residual(problem.conditions[0]),
              (u - x).select(1, 0).select(-1, 0));
  EXPECT_SAME(field.residual(problem.conditions[1]),
              (2 * x.pow(3) * t).select(1, 0));
  EXPECT_SAME(field.residual(problem.conditions[2]), (u - t).select(0, 3));
  EXPECT_SAME(field.residual(problem.conditions[3]),
              u.select(0, 3) - u.select(0, 0));
}

TEST(PhysicsField, TermsAreMeansAndSums) {
  const Problem problem = parse_problem(kProblem, "mixed");
  const Made m = made(problem, 4);
  PhysicsField field(problem, m.rows, m.u.unsqueeze(-1));
  const auto terms = physics_terms(problem, field);
  ASSERT_EQ(terms.size(), 3U);
  const auto mean = [&](std::size_t i) {
    return field.residual(problem.conditions[i]).square().mean();
  };
  EXPECT_SAME(terms.at("residual"),
              field.residual(problem.equation).square().mean());
  EXPECT_SAME(terms.at("initial"), mean(0) + mean(1));
  EXPECT_SAME(terms.at("boundary"), mean(2) + mean(3));
}

// What is linear in a coordinate has a second derivative of zero, which
// autograd does not know of.
TEST(PhysicsField, DerivativesThatVanishAreZero) {
  const Problem problem = parse_problem(kProblem, "mixed");
  const Made m = made(problem, 3);
  PhysicsField field(problem, m.rows, (m.x * 2).unsqueeze(-1));
  EXPECT_SAME(field.residual(problem.equation).flatten(0, 1), -m.t);
  PhysicsField constant(problem, m.rows,
                        torch::ones({9, 2, 1}, torch::kDouble));
  EXPECT_SAME(constant.residual(problem.equation).flatten(0, 1), -m.t);
}

TEST(PhysicsField, ExactSolutionsSolveTheirProblems) {
  for (const std::string& name : physics::problem_names()) {
    SCOPED_TRACE(name);
    const Problem problem = parse_problem(physics::problem_text(name), name);
    EXPECT_NO_THROW(check_exact_solution(problem));
  }
}

// By closed forms that are not those of the files.
TEST(PhysicsField, ExactSolutionsAreThePublishedOnes) {
  const double pi = std::numbers::pi;
  const auto expect = [&](const char* name, double x, double t, double value) {
    const Problem problem = parse_problem(physics::problem_text(name), name);
    const auto u = value_at(problem.exact, problem.names,
                            torch::tensor({{x, t}}, torch::kDouble));
    EXPECT_NEAR(u.item<double>(), value, 1e-14) << name;
  };
  expect("convection", 1, 0.3, std::sin(1 - 15.0));
  const double h = std::exp(-std::pow(1 - pi, 2) / (2 * std::pow(pi / 4, 2)));
  expect("reaction", 1, 0.3, h * std::exp(1.5) / (h * std::exp(1.5) + 1 - h));
  expect("wave", 0.2, 0.3,
         std::sin(0.2 * pi) * std::cos(0.6 * pi) +
             0.5 * std::sin(0.6 * pi) * std::cos(1.8 * pi));
}

std::string refusal(const char* name, const std::string& from,
                    const std::string& to) {
  std::string text(physics::problem_text(name));
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos);
  text.replace(at, from.size(), to);
  return message_of<run::ConfigError>(
      [&] { check_exact_solution(parse_problem(text, name)); });
}

TEST(PhysicsField, WrongSolutionsAreRefused) {
  EXPECT_EQ(refusal("convection", "exact = \"sin(x - beta*t)\"",
                    "exact = \"sin(x - 49*t)\""),
            "[problem] Convection: the exact solution \"sin(x - 49*t)\" does "
            "not fit the equation \"u_t + beta*u_x = 0\": it is off by up to "
            "1");
  EXPECT_TRUE(contains(refusal("heat", "u = sin(pi*x)", "u = sin(2*pi*x)"),
                       "does not fit the condition \"u = sin(2*pi*x)\""));
  EXPECT_TRUE(
      contains(refusal("heat", "where = \"x = 1\"\nequation = \"u = 0\"",
                       "periodic = \"t\""),
               "it is not periodic in t"));
}

}  // namespace physics_field_test
}  // namespace polyattn::train
