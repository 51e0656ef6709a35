#include "theory/plot_axes.h"

#include <algorithm>
#include <cmath>

namespace polyattn::theory {

void LogRange::add(double value) {
  low = std::min(low, std::log10(value));
  high = std::max(high, std::log10(value));
}

void LogRange::widen() {
  if (low > high) low = high = 0;
  const double air = std::max(0.04 * (high - low), 0.15);
  low -= air;
  high += air;
}

double Axes::across(double value) const {
  return (std::log10(value) - x.low) / (x.high - x.low) * kPanelWidth;
}

double Axes::down(double value) const {
  return (y.high - std::log10(value)) / (y.high - y.low) * kPanelHeight;
}

bool drawable(const std::pair<double, double>& point) {
  return point.first > 0 && point.second > 0 && std::isfinite(point.first) &&
         std::isfinite(point.second);
}

Axes axes_of(const PlotPanel& panel) {
  Axes axes;
  for (const PlotSeries& series : panel.series) {
    for (const auto* points : {&series.line, &series.marks}) {
      for (const auto& point : *points) {
        if (!drawable(point)) continue;
        axes.x.add(point.first);
        axes.y.add(point.second);
      }
    }
  }
  axes.x.widen();
  axes.y.widen();
  return axes;
}

std::vector<int> tick_exponents(const LogRange& range, double base, int most) {
  const double unit = std::log10(base);
  const int first = static_cast<int>(std::ceil(range.low / unit));
  const int last = static_cast<int>(std::floor(range.high / unit));
  const int step = std::max(1, (last - first) / most + 1);
  std::vector<int> exponents;
  for (int e = first; e <= last; e += step) exponents.push_back(e);
  return exponents;
}

}  // namespace polyattn::theory
