// Logarithmic axes of a panel of a plot.
#pragma once

#include <limits>
#include <utility>
#include <vector>

#include "theory/plot.h"

namespace polyattn::theory {

// Of the area that lines are drawn in, in pixels.
inline constexpr double kPanelWidth = 360;
inline constexpr double kPanelHeight = 400;

struct LogRange {
  double low = std::numeric_limits<double>::infinity();  // decimal logarithms
  double high = -std::numeric_limits<double>::infinity();

  void add(double value);
  // Some air on both sides, and a width above 0.
  void widen();
};

struct Axes {
  LogRange x, y;

  // Pixels from the left and from the top.
  double across(double value) const;
  double down(double value) const;
};

// Whether a logarithmic plot has a place for it.
bool drawable(const std::pair<double, double>& point);

// Around all points of the panel.
Axes axes_of(const PlotPanel& panel);

// Exponents of the powers of `base` inside the range, thinned out to `most`.
std::vector<int> tick_exponents(const LogRange& range, double base, int most);

}  // namespace polyattn::theory
