// RUN/solution.json: what a run on an equation has found, on a grid of points.
//
//   columns    {name, values}: the axis along a row, as {"name": "x", ...};
//              values rise
//   rows       {name, values}: the other axis, often "t"
//   exact      the solution, a number for each point, row by row
//   predicted  what the model says, in the same order
//
// Predictions that are not finite are the strings "nan", "inf", "-inf", as in
// the other records.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_text.h"

namespace polyattn::run {

struct SolutionAxis {
  std::string name;
  std::vector<double> values;

  bool operator==(const SolutionAxis&) const = default;
};

struct Solution {
  SolutionAxis columns, rows;
  // Of column j and row i at i * columns + j.
  std::vector<double> exact, predicted;

  bool operator==(const Solution&) const = default;
};

// Of either axis.
inline constexpr std::size_t kMostSolutionValues = 512;
// What solution_json() of the largest takes, at 17 digits a number, and more.
inline constexpr std::size_t kMaxSolutionBytes = 16 << 20;

// Throws std::invalid_argument unless each axis has 2 values or more that rise,
// no more than can be read again, and every point its two numbers, of which
// exact is finite.
base::Json solution_json(const Solution& solution);
// The inverse, of a file that anybody may have written. Members that are not
// known are left out. Throws base::JsonError, of one line.
Solution parse_solution(std::string_view text);

// Into the folder of a run, whole or not at all. Throws std::system_error, and
// what solution_json() throws.
void write_solution(const std::filesystem::path& folder,
                    const Solution& solution);

}  // namespace polyattn::run
