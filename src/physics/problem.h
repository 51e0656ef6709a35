// A differential equation with its conditions and its solution, as a file:
//
//   title = "Convection"
//   coordinates = ["x", "t"]
//   equation = "u_t + beta*u_x = 0"
//   exact = "sin(x - beta*t)"
//
//   [parameters]
//   beta = 50
//
//   [domain]
//   x = ["0", "2*pi"]
//   t = ["0", "1"]
//
//   [[condition]]
//   where = "t = 0"
//   equation = "u = sin(x)"
//
//   [[condition]]
//   periodic = "x"
//
//   [sampling]
//   points = 51
//   test_points = 101
//
// docs/training.md says what each key means; configs/problems/ has the problems
// that have a name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "physics/expression.h"

namespace polyattn::physics {

struct Interval {
  double low = 0;
  double high = 1;
};

// Of the points of an edge of the grid.
struct Condition {
  // By which the loss counts it: "initial", of the start of t, or "boundary".
  std::string term;
  std::size_t coordinate = 0;  // which is fixed
  bool high = false;           // at the end of its domain, not at its start
  // Undefined: the unknown is the same at both ends.
  std::optional<Expression> equation = {};

  bool is_periodic() const { return !equation.has_value(); }
};

struct Problem {
  std::string title;
  std::string text;  // of the file
  Names names;       // two coordinates
  std::vector<Interval> domain;
  Expression equation;  // what is to be zero
  Expression exact;
  std::vector<Condition> conditions;
  // Of the grid that is trained on and of that which is evaluated on, along
  // each coordinate, ends included.
  std::int64_t points = 51;
  std::int64_t test_points = 101;
};

inline constexpr std::int64_t kMostPoints = 512;

// Throws run::ConfigError with all that is wrong, by line and column of
// `source`. Whether the exact solution solves it is not asked
// (train/physics_check.h).
Problem parse_problem(std::string_view text, std::string_view source);

// The same of a file.
Problem read_problem(const std::filesystem::path& path);

// Those of configs/problems/, which are compiled in: their names, in order.
const std::vector<std::string>& problem_names();
// The text of one; empty if there is none of that name.
std::string_view problem_text(std::string_view name);

}  // namespace polyattn::physics
