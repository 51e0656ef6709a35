// A line search to the strong Wolfe conditions (Nocedal and Wright, algorithms
// 3.5 and 3.6), with the cubic of two values and two slopes.
//
//   f(t) <= f(0) + c1 t f'(0)      it falls enough
//   |f'(t)| <= c2 |f'(0)|          and is flat enough
//
// A value or slope that is not finite counts as infinitely high: what lies
// beyond is not looked at, and the stretch is halved.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>

namespace polyattn::train {

// A point on the line.
struct LinePoint {
  double t = 0;
  double value = 0;
  double slope = 0;
  torch::Tensor gradient = {};  // of all directions; handed through
};

struct LineSearchOptions {
  double c1 = 1e-4;
  double c2 = 0.9;
  std::int64_t evaluations = 25;  // at most, 1 or more
  double shortest = 0;            // stretch in t that is still divided
};

struct LineSearchResult {
  LinePoint best;  // the start, if nothing better was found
  std::int64_t evaluations = 0;
  bool fulfilled = false;   // both conditions
  bool none_finite = true;  // of the points that were tried
  double shortest_tried = 0;
};

// From `start`, whose t is 0 and whose slope is below 0, with `first` as the
// first t.
LineSearchResult search_line(const std::function<LinePoint(double t)>& at,
                             const LinePoint& start, double first,
                             const LineSearchOptions& options);

}  // namespace polyattn::train
