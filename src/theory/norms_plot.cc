#include "theory/norms_plot.h"

#include <fmt/format.h>

#include <cmath>

namespace polyattn::theory {
namespace {

// ||A||_F or ||dA/dS||_F.
struct PlottedNorm {
  const char* title;
  std::vector<double> SampledNorms::*values;
  double (*expected)(const Activation&, const Setting&);
  double (*bound)(std::int64_t);  // of softmax
};

constexpr PlottedNorm kPlottedNorms[] = {
    {"‖A‖, Frobenius norm of the weights", &SampledNorms::weight_sq,
     expected_weight_sq, softmax_norm_bound},
    {"‖dA/dS‖, of their gradient", &SampledNorms::jacobian_sq,
     expected_jacobian_sq, softmax_jacobian_bound}};

double root_mean(const std::vector<double>& squares) {
  return std::sqrt(summarize(squares).mean);
}

PlotSeries bound_series(const StudyOptions& o, const PlottedNorm& norm) {
  PlotSeries series{.name = "bound of softmax: √N, √N/2", .dashed = true};
  for (const std::int64_t n : {o.lengths.front(), o.lengths.back()}) {
    series.line.emplace_back(static_cast<double>(n), norm.bound(n));
  }
  return series;
}

PlotSeries softmax_series(const PlottedNorm& norm,
                          const std::vector<GaussianLength>& data) {
  PlotSeries series{.name = "softmax", .mark = Mark::kDot};
  for (const GaussianLength& length : data) {
    series.marks.emplace_back(static_cast<double>(length.tokens),
                              root_mean(length.softmax.*norm.values));
  }
  series.line = series.marks;
  return series;
}

PlotSeries monomial_series(const StudyOptions& o, const PlottedNorm& norm,
                           const std::vector<GaussianLength>& data,
                           std::size_t d, bool scaled) {
  const Activation activation = monomial(o.degrees[d], scaled);
  PlotSeries series{.name = activation.to_string(),
                    .colour = static_cast<int>(d),
                    .dashed = !scaled,
                    .mark = scaled ? Mark::kDot : Mark::kRing};
  for (const GaussianLength& length : data) {
    const auto n = static_cast<double>(length.tokens);
    const Setting setting{.tokens = length.tokens, .width = o.width};
    const auto& norms = (scaled ? length.scaled : length.plain)[d];
    series.line.emplace_back(n, std::sqrt(norm.expected(activation, setting)));
    series.marks.emplace_back(n, root_mean(norms.*norm.values));
  }
  return series;
}

}  // namespace

Plot norms_plot(const StudyOptions& options,
                const std::vector<GaussianLength>& data) {
  Plot plot{.title = "Norms of attention against the number of tokens",
            .subtitle = fmt::format(
                "Gaussian queries and keys of width {}. Lines: exact, or "
                "bounds; marks: measured.",
                options.width),
            .x_label = "N, tokens"};
  for (const PlottedNorm& norm : kPlottedNorms) {
    PlotPanel panel{.title = norm.title};
    panel.series.push_back(bound_series(options, norm));
    panel.series.push_back(softmax_series(norm, data));
    for (const bool scaled : {true, false}) {
      for (std::size_t d = 0; d < options.degrees.size(); ++d) {
        panel.series.push_back(monomial_series(options, norm, data, d, scaled));
      }
    }
    plot.panels.push_back(std::move(panel));
  }
  return plot;
}

}  // namespace polyattn::theory
