#include "theory/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "theory/plot_axes.h"

namespace polyattn::theory {
namespace {

// In pixels of the SVG.
constexpr double kPanelLeft = 64, kPanelTop = 92, kPanelGap = 66;
constexpr double kLegendGap = 24, kLegendWidth = 240, kLegendLine = 21;
constexpr double kFootHeight = 56;

// Colours that differ in lightness too, for those who do not see hues.
constexpr const char* kLightColours[] = {"#0064a8", "#c75000", "#007a55",
                                         "#a3397b", "#7a5c00", "#5b4bb7",
                                         "#3c7a00", "#b3002d"};
constexpr const char* kDarkColours[] = {"#6cb8ff", "#ff9d57", "#3fd6a4",
                                        "#f08cc8", "#e0bd4a", "#a99bff",
                                        "#9bdc5c", "#ff7d93"};

std::string style_rules(const char* const* colours, const char* text,
                        const char* soft, const char* ground) {
  std::string rules = fmt::format(
      ".ground{{fill:{}}}text{{fill:{}}}.grid{{stroke:{}}}.frame{{stroke:{}}}"
      ".n{{stroke:{}}}.fn{{fill:{}}}.ring{{fill:{}}}",
      ground, text, soft, text, text, text, ground);
  for (int i = 0; i < 8; ++i) {
    rules += fmt::format(".c{0}{{stroke:{1}}}.f{0}{{fill:{1}}}", i, colours[i]);
  }
  return rules + "\n";
}

std::string style_text() {
  return fmt::format(
      "<style>\ntext{{font:13px system-ui,sans-serif}}.title{{font-size:18px;"
      "font-weight:600}}.head{{font-weight:600}}.tick{{font-size:12px}}"
      ".line{{fill:none;stroke-width:1.8}}.dashed{{stroke-dasharray:5 4}}"
      ".grid,.frame{{fill:none;stroke-width:1}}.mark{{stroke-width:1.6}}\n{}"
      "@media (prefers-color-scheme:dark){{{}}}\n</style>\n",
      style_rules(kLightColours, "#1d1d1f", "#e3e3e6", "#ffffff"),
      style_rules(kDarkColours, "#ececf0", "#3a3a40", "#17171a"));
}

std::string colour_class(const PlotSeries& s, char kind) {
  const std::string name = s.colour < 0 ? "n" : std::to_string(s.colour % 8);
  if (kind == 'f') return "f" + name;
  return s.colour < 0 ? name : "c" + name;
}

std::string mark_text(const PlotSeries& s, double x, double y) {
  if (s.mark == Mark::kNone) return "";
  return fmt::format(
      "<circle class=\"mark {} {}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.4\"/>\n",
      colour_class(s, 'c'),
      s.mark == Mark::kRing ? "ring" : colour_class(s, 'f'), x, y);
}

std::string series_text(const PlotSeries& s, const Axes& axes) {
  std::string points, text;
  for (const auto& point : s.line) {
    if (!drawable(point)) continue;
    points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ",
                          axes.across(point.first), axes.down(point.second));
  }
  if (!points.empty()) {
    text +=
        fmt::format("<polyline class=\"line {}{}\" points=\"{}\"/>\n",
                    colour_class(s, 'c'), s.dashed ? " dashed" : "", points);
  }
  for (const auto& point : s.marks) {
    if (!drawable(point)) continue;
    text += mark_text(s, axes.across(point.first), axes.down(point.second));
  }
  return text;
}

std::string x_axis_text(const Axes& axes, const std::string& label) {
  std::string text;
  const int most = axes.x.high > 5 ? 6 : 10;  // labels of six digits are wide
  for (const int e : tick_exponents(axes.x, 2, most)) {
    const double value = std::ldexp(1.0, e);
    const double at = axes.across(value);
    text += fmt::format(
        "<path class=\"grid\" d=\"M{0:.1f} 0V{1:.0f}\"/><text class=\"tick\" "
        "x=\"{0:.1f}\" y=\"{2:.0f}\" text-anchor=\"middle\">{3:.0f}</text>\n",
        at, kPanelHeight, kPanelHeight + 18, value);
  }
  return text + fmt::format(
                    "<text x=\"{:.0f}\" y=\"{:.0f}\" "
                    "text-anchor=\"middle\">{}</text>\n",
                    kPanelWidth / 2, kPanelHeight + 40, xml_escaped(label));
}

std::string y_axis_text(const Axes& axes) {
  std::string text;
  for (const int e : tick_exponents(axes.y, 10, 10)) {
    const double at = axes.down(std::pow(10.0, e));
    text += fmt::format(
        "<path class=\"grid\" d=\"M0 {0:.1f}H{1:.0f}\"/><text class=\"tick\" "
        "x=\"-8\" y=\"{2:.1f}\" text-anchor=\"end\">10<tspan dy=\"-5\" "
        "font-size=\"9px\">{3}</tspan></text>\n",
        at, kPanelWidth, at + 4, e);
  }
  return text;
}

std::string panel_text(const PlotPanel& panel, double left,
                       const std::string& x_label) {
  const Axes axes = axes_of(panel);
  std::string text = fmt::format(
      "<g transform=\"translate({:.0f} {:.0f})\">\n<text class=\"head\" "
      "y=\"-12\">{}</text>\n",
      left, kPanelTop, xml_escaped(panel.title));
  text += x_axis_text(axes, x_label) + y_axis_text(axes);
  text += fmt::format(
      "<rect class=\"frame\" width=\"{:.0f}\" height=\"{:.0f}\"/>\n",
      kPanelWidth, kPanelHeight);
  for (auto series = panel.series.rbegin(); series != panel.series.rend();
       ++series) {
    text += series_text(*series, axes);
  }
  return text + "</g>\n";
}

// Each name once, in the order of its first panel.
std::vector<PlotSeries> legend_entries(const Plot& plot) {
  std::vector<PlotSeries> entries;
  for (const PlotPanel& panel : plot.panels) {
    for (const PlotSeries& series : panel.series) {
      const bool known = std::any_of(
          entries.begin(), entries.end(),
          [&](const PlotSeries& e) { return e.name == series.name; });
      if (!known) entries.push_back(series);
    }
  }
  return entries;
}

std::string legend_text(const Plot& plot, double left) {
  std::string text = fmt::format("<g transform=\"translate({:.0f} {:.0f})\">\n",
                                 left, kPanelTop + 8);
  double at = 0;
  for (const PlotSeries& entry : legend_entries(plot)) {
    text += fmt::format(
        "<path class=\"line {}{}\" d=\"M0 {:.0f}h30\"/>{}<text x=\"40\" "
        "y=\"{:.0f}\">{}</text>\n",
        colour_class(entry, 'c'), entry.dashed ? " dashed" : "", at,
        mark_text(entry, 15, at), at + 4, xml_escaped(entry.name));
    at += kLegendLine;
  }
  return text + "</g>\n";
}

}  // namespace

std::string xml_escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string plot_svg(const Plot& plot) {
  std::string panels;
  double left = kPanelLeft;
  for (const PlotPanel& panel : plot.panels) {
    panels += panel_text(panel, left, plot.x_label);
    left += kPanelWidth + kPanelGap;
  }
  left += kLegendGap - kPanelGap;
  const double width = left + kLegendWidth;
  const double height = kPanelTop + kPanelHeight + kFootHeight;
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\">\n"
      "<title>{2}</title>\n{3}<rect class=\"ground\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\"/>\n<text class=\"title\" x=\"{4:.0f}\" "
      "y=\"32\">{2}</text>\n<text x=\"{4:.0f}\" y=\"54\">{5}</text>\n{6}{7}"
      "</svg>\n",
      width, height, xml_escaped(plot.title), style_text(), kPanelLeft / 2,
      xml_escaped(plot.subtitle), panels, legend_text(plot, left));
}

}  // namespace polyattn::theory
