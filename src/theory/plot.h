// Lines and marks on logarithmic axes, as an SVG file that needs nothing else
// and follows the light or dark scheme of its reader.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace polyattn::theory {

enum class Mark { kNone, kDot, kRing };

struct PlotSeries {
  std::string name = {};
  int colour = -1;  // 0 .. 7, or -1 for that of the text
  bool dashed = false;
  Mark mark = Mark::kNone;
  // (x, y) above 0. Others are left out.
  std::vector<std::pair<double, double>> line = {}, marks = {};
};

struct PlotPanel {
  std::string title = {};
  std::vector<PlotSeries> series = {};  // the first is drawn above the others
};

struct Plot {
  std::string title = {}, subtitle = {};
  std::string x_label = {};
  std::vector<PlotPanel> panels = {};  // side by side
};

// x has ticks at powers of two, y at powers of ten. The legend, right of the
// panels, has each name once.
std::string plot_svg(const Plot& plot);

// For text and attributes.
std::string xml_escaped(std::string_view text);

}  // namespace polyattn::theory
