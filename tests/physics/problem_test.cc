// Problems as files: those with a name, and everything that can be wrong.
#include "physics/problem.h"

#include <gtest/gtest.h>

#include <numbers>

#include "support/message_of.h"
#include "train/run/config.h"

namespace polyattn::physics {
namespace {

using test::contains;
using test::message_of;

constexpr const char* kGood = R"toml(title = "Heat"
coordinates = ["x", "t"]
equation = "u_t = alpha*u_xx"
exact = "exp(-alpha*pi^2*t)*sin(pi*x)"
[parameters]
alpha = 0.5
[domain]
x = ["0", "1"]
t = ["0", "2"]
[[condition]]
where = "t = 0"
equation = "u = sin(pi*x)"
[[condition]]
where = "x = 0"
equation = "u = 0"
[[condition]]
where = "x = 1"
equation = "u = 0"
[sampling]
points = 11
test_points = 21
)toml";

// kGood with a part replaced.
std::string with(const std::string& from, const std::string& to) {
  std::string text = kGood;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string error(const std::string& text) {
  return message_of<run::ConfigError>(
      [&] { parse_problem(text, "heat.toml"); });
}

TEST(Problem, IsWhatTheFileSays) {
  const Problem problem = parse_problem(kGood, "heat.toml");
  EXPECT_EQ(problem.title, "Heat");
  EXPECT_EQ(problem.text, kGood);
  EXPECT_EQ(problem.names.coordinates, (std::vector<std::string>{"x", "t"}));
  EXPECT_EQ(problem.names.unknown, "u");
  EXPECT_EQ(problem.names.parameters.at("alpha"), 0.5);
  ASSERT_EQ(problem.domain.size(), 2U);
  EXPECT_EQ(problem.domain[1].high, 2);
  EXPECT_EQ(problem.points, 11);
  EXPECT_EQ(problem.test_points, 21);
  ASSERT_EQ(problem.conditions.size(), 3U);
  EXPECT_EQ(problem.conditions[0].term, "initial");
  EXPECT_EQ(problem.conditions[0].coordinate, 1U);
  EXPECT_EQ(problem.conditions[1].term, "boundary");
  EXPECT_FALSE(problem.conditions[1].high);
  EXPECT_TRUE(problem.conditions[2].high);
  EXPECT_FALSE(problem.conditions[2].is_periodic());
}

TEST(Problem, ThereAreSomeByName) {
  EXPECT_EQ(problem_names(),
            (std::vector<std::string>{"convection", "reaction", "wave", "heat",
                                      "poisson"}));
  for (const std::string& name : problem_names()) {
    const Problem problem = parse_problem(problem_text(name), name);
    EXPECT_EQ(problem.points, 51) << name;
    EXPECT_EQ(problem.test_points, 101) << name;
  }
  EXPECT_EQ(problem_text("ocean"), "");
  const Problem convection =
      parse_problem(problem_text("convection"), "convection");
  EXPECT_EQ(convection.names.parameters.at("beta"), 50);
  EXPECT_EQ(convection.domain[0].high, 2 * std::numbers::pi);
  EXPECT_TRUE(convection.conditions[1].is_periodic());
  const Problem poisson = parse_problem(problem_text("poisson"), "poisson");
  for (const Condition& condition : poisson.conditions)
    EXPECT_EQ(condition.term, "boundary");
}

TEST(Problem, ErrorsPointAtLineAndColumn) {
  EXPECT_EQ(error(with("alpha*u_xx", "alpa*u_xx")),
            "[problem] heat.toml:3:1: equation: unknown name 'alpa', did you "
            "mean alpha?\n    u_t = alpa*u_xx\n          ^");
  EXPECT_EQ(error(with("alpha*u_xx", "u_yy")),
            "[problem] heat.toml:3:1: equation: a derivative by 'y', which is "
            "no coordinate: there are x, t\n    u_t = u_yy\n            ^");
  EXPECT_EQ(error(with("x = [\"0\", \"1\"]", "x = [\"1\", \"1\"]")),
            "[problem] heat.toml:8:1: x goes from 1 to 1: its domain has no "
            "size");
  EXPECT_EQ(error(with("x = [\"0\", \"1\"]", "x = [\"0\"]")),
            "[problem] heat.toml:8:1: x has 1 ends, must have two, as in "
            "[\"0\", \"2*pi\"]");
  EXPECT_EQ(error(with("x = [\"0\", \"1\"]\n", "")),
            "[problem] heat.toml:7:2: x is missing");
  EXPECT_EQ(error(with("where = \"x = 1\"", "where = \"x = 0.5\"")),
            "[problem] heat.toml:17:1: where is x = 0.5, must be an end of its "
            "domain: 0 or 1");
  EXPECT_EQ(error(with("equation = \"u_t = alpha*u_xx\"", "equation = \"x\"")),
            "[problem] heat.toml:3:1: equation holds neither u nor a "
            "derivative of it");
  EXPECT_TRUE(
      contains(error(with("sin(pi*x)\"", "u\"")), "exact: unknown name 'u'"));
  EXPECT_EQ(error(with("points = 11", "points = 2")),
            "[problem] heat.toml:20:1: points is 2, must be from 3 to 512");
}

TEST(Problem, RefusesWhatIsNotThere) {
  EXPECT_EQ(error(with("title = \"Heat\"\n", "")),
            "[problem] heat.toml: title is missing");
  EXPECT_EQ(error("title = \"a\"\ncoordinates = [\"x\", \"t\"]\n"
                  "equation = \"u_t\"\nexact = \"1\"\n"),
            "[problem] heat.toml: there is no [domain]");
  EXPECT_EQ(error("title = \"a\"\ncoordinates = [\"x\", \"t\"]\n"
                  "equation = \"u_t\"\nexact = \"1\"\n[domain]\n"
                  "x = [\"0\", \"1\"]\nt = [\"0\", \"1\"]\n"),
            "[problem] heat.toml: there is no [[condition]]");
  EXPECT_EQ(error(with("where = \"x = 1\"\n", "")),
            "[problem] heat.toml:16:1: where is missing");
  EXPECT_EQ(error(with("[sampling]", "[samplign]")),
            "[problem] heat.toml:19:2: unknown section \"samplign\": there are "
            "[parameters], [domain], [[condition]] and [sampling]");
  EXPECT_TRUE(contains(error(with("where = \"x = 1\"", "were = \"x = 1\"")),
                       "unknown key \"were\": did you mean where?"));
}

TEST(Problem, NamesAreTheirOwn) {
  EXPECT_EQ(error(with("[\"x\", \"t\"]", "[\"x\"]")),
            "[problem] heat.toml:2:1: coordinates are x, must be two, such as "
            "x and t");
  EXPECT_EQ(error(with("[\"x\", \"t\"]", "[\"x\", \"x\"]")),
            "[problem] heat.toml:2:1: coordinates are x, x, must be two, such "
            "as x and t");
  EXPECT_EQ(error(with("[\"x\", \"t\"]", "[\"x\", \"time\"]")),
            "[problem] heat.toml:2:1: coordinates have \"time\", must be "
            "letters");
  EXPECT_EQ(error(with("[\"x\", \"t\"]", "[\"t\", \"x\"]")),
            "[problem] heat.toml:2:1: coordinates begin with t: time is the "
            "last");
  EXPECT_EQ(error(with("alpha = 0.5", "sin = 0.5")),
            "[problem] heat.toml:6:1: the parameter \"sin\" must be a name of "
            "its own, of letters and digits");
  EXPECT_EQ(error(with("alpha = 0.5", "alpha = \"1\"")),
            "[problem] heat.toml:6:1: alpha is a string, must be a number");
  EXPECT_EQ(error(with("alpha = 0.5", "alpha = inf")),
            "[problem] heat.toml:6:1: alpha is not finite");
  EXPECT_EQ(error(with("equation", "unknown = \"x\"\nequation")),
            "[problem] heat.toml:3:1: unknown is \"x\", must be a name of its "
            "own");
  EXPECT_EQ(error(with("where = \"x = 1\"\nequation = \"u = 0\"",
                       "periodic = \"y\"")),
            "[problem] heat.toml:17:1: periodic is \"y\", which is no "
            "coordinate");
}

TEST(Problem, AFileThatIsNotThereIsSaidSo) {
  EXPECT_TRUE(contains(
      message_of<run::ConfigError>([] { read_problem("/nowhere/heat.toml"); }),
      "/nowhere/heat.toml"));
}

}  // namespace
}  // namespace polyattn::physics
