// The plot is XML, whatever is in it.
#include "theory/plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "theory/norms_plot.h"
#include "theory/plot_axes.h"

namespace polyattn::theory::plot_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

// What is wrong with a document of elements, attributes in double quotes, text
// and the five entities; empty if nothing is.
std::string xml_fault(std::string_view xml) {
  std::vector<std::string> open;
  std::size_t at = 0;
  const auto skip_entity = [&] {
    const std::size_t end = xml.find(';', at);
    const std::string_view name = xml.substr(at, end - at + 1);
    for (const char* known : {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"}) {
      if (name == known) return at = end + 1, true;
    }
    return false;
  };
  while (at < xml.size()) {
    if (xml[at] == '&' && !skip_entity()) return "bare &";
    if (at >= xml.size() || xml[at] != '<') {
      ++at;
      continue;
    }
    const bool closing = xml[++at] == '/';
    if (closing) ++at;
    std::size_t end = at;
    while (end < xml.size() && is_name(xml[end])) ++end;
    const std::string name(xml.substr(at, end - at));
    if (name.empty()) return "bare <";
    bool quoted = false;
    for (at = end; at < xml.size() && (quoted || xml[at] != '>'); ++at) {
      if (xml[at] == '"') quoted = !quoted;
      if (xml[at] == '<') return "< inside " + name;
    }
    if (at >= xml.size()) return name + " does not end";
    const bool whole = xml[at - 1] == '/';
    ++at;
    if (closing) {
      if (open.empty() || open.back() != name) return "wrong end of " + name;
      open.pop_back();
    } else if (!whole) {
      open.push_back(name);
    }
  }
  return open.empty() ? "" : open.back() + " is not closed";
}

TEST(XmlFault, IsFound) {
  EXPECT_EQ(xml_fault("<a><b x=\"1\"/>&lt;</a>"), "");
  for (const char* bad :
       {"<a>", "<a></b>", "<a>&</a>", "<a>1 < 2</a>", "<a x=\"<\"/>", "<a"}) {
    EXPECT_NE(xml_fault(bad), "") << bad;
  }
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

PlotSeries series(const std::string& name) {
  return {.name = name,
          .colour = 3,
          .mark = Mark::kDot,
          .line = {{16, 1}, {64, 10}},
          .marks = {{16, 1}, {64, 10}}};
}

TEST(Plot, EscapesTextAndIsXml) {
  const std::string wild = "<b>\"x\" & 'y'</b>";
  const Plot plot{.title = wild,
                  .subtitle = wild,
                  .x_label = wild,
                  .panels = {{wild, {series(wild)}}, {wild, {series(wild)}}}};
  const std::string svg = plot_svg(plot);
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_EQ(svg.find("<b>"), std::string::npos);
  EXPECT_NE(svg.find("&lt;b&gt;&quot;x&quot; &amp; &#39;y&#39;"),
            std::string::npos);
  EXPECT_NE(svg.find("prefers-color-scheme:dark"), std::string::npos);
}

TEST(Plot, HasEachNameOnceInTheLegend) {
  const Plot plot{.panels = {{"a", {series("one"), series("two")}},
                             {"b", {series("one")}}}};
  const std::string svg = plot_svg(plot);
  EXPECT_EQ(count(svg, ">one</text>"), 1U);
  EXPECT_EQ(count(svg, ">two</text>"), 1U);
  EXPECT_EQ(count(svg, "<polyline"), 3U);
  // Six marks in the panels and two in the legend.
  EXPECT_EQ(count(svg, "<circle"), 8U);
}

TEST(Plot, LeavesOutWhatLogarithmsDoNotHave) {
  PlotSeries s = series("s");
  s.marks = {{16, 0}, {16, -1}, {16, kNan}, {16, kInf}, {0, 1}};
  s.line = s.marks;
  const std::string svg = plot_svg({.panels = {{"p", {s}}}});
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_EQ(count(svg, "<circle"), 1U);  // the legend
  EXPECT_EQ(count(svg, "nan") + count(svg, "inf"), 0U);
}

TEST(Plot, OfNothingIsStillXml) {
  EXPECT_EQ(xml_fault(plot_svg({})), "");
  EXPECT_EQ(xml_fault(plot_svg({.panels = {{"empty", {}}}})), "");
}

TEST(Axes, PutPointsInsideThePanel) {
  const Axes axes = axes_of({"p", {series("s")}});
  EXPECT_GT(axes.across(16), 0);
  EXPECT_LT(axes.across(16), axes.across(64));
  EXPECT_LT(axes.across(64), kPanelWidth);
  EXPECT_GT(axes.down(10), 0);
  EXPECT_LT(axes.down(10), axes.down(1));
  EXPECT_LT(axes.down(1), kPanelHeight);
}

TEST(Axes, HaveTicksInsideTheRangeAndNotTooMany) {
  EXPECT_EQ(tick_exponents({std::log10(15), std::log10(130)}, 2, 10),
            (std::vector<int>{4, 5, 6, 7}));
  EXPECT_LE(tick_exponents({-30, 30}, 10, 10).size(), 10U);
}

TEST(NormsPlot, HasALineForEveryActivationAndTheBounds) {
  StudyOptions options;
  options.degrees = {1, 3};
  options.lengths = {8, 16};
  options.width = 4;
  options.samples = 8;
  SerialParallel serial;
  std::vector<GaussianLength> data;
  for (const std::int64_t tokens : options.lengths) {
    data.push_back(measure_gaussian(options, tokens, serial));
  }
  const Plot plot = norms_plot(options, data);
  ASSERT_EQ(plot.panels.size(), 2U);
  for (const PlotPanel& panel : plot.panels) {
    // Bound, softmax, and two degrees with and without sqrt(N).
    ASSERT_EQ(panel.series.size(), 6U);
    EXPECT_EQ(panel.series[1].marks.size(), 2U);
  }
  const PlotSeries& bound = plot.panels[0].series[0];
  EXPECT_DOUBLE_EQ(bound.line.back().second, 4);
  const std::string svg = plot_svg(plot);
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_EQ(count(svg, ">x^3/sqrt(N)</text>"), 1U);
}

}  // namespace
}  // namespace polyattn::theory::plot_test
