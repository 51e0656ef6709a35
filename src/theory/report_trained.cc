#include "theory/report_trained.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json_text.h"
#include "base/output.h"
#include "base/program.h"
#include "theory/calibrate.h"

namespace polyattn::theory {
namespace {

base::Json optional_number(const std::optional<double>& value) {
  return value ? base::number(*value) : base::Json(nullptr);
}

base::Json trained_json(const TheoryRunNorms& norms,
                        const std::vector<TrainedRow>& rows) {
  base::Json list = base::Json::array();
  for (const TrainedRow& row : rows) {
    list.push_back(
        {{"name", row.layer.name},
         {"weight_norm", base::number(row.layer.weight_norm)},
         {"weight_bound", optional_number(row.weight_bound)},
         {"weight_expected", optional_number(row.weight_expected)},
         {"jacobian_norm", base::number(row.layer.jacobian_norm)},
         {"jacobian_bound", optional_number(row.jacobian_bound)},
         {"jacobian_expected", optional_number(row.jacobian_expected)},
         {"max_abs_score", base::number(row.layer.max_abs_score)},
         {"within_bounds", row.within_bounds}});
  }
  const MeasuredLayer& first = norms.layers.front();
  return {{"task", norms.task},
          {"examples", norms.examples},
          {"activation", first.activation},
          {"tokens", first.tokens},
          {"width", first.width},
          {"causal", first.causal},
          {"rows", std::move(list)}};
}

// Root mean squares of ||A||_F of one layer, or of all.
struct Roots {
  double softmax = 0;
  double plain = 0;   // x^p
  double scaled = 0;  // x^p/sqrt(N)
};

struct RunConstants {
  std::string name;
  double softmax = 0;
  CalibratedFormula fixed, row;
};

RunConstants run_constants(const std::string& name, const Roots& roots,
                           int degree) {
  // Measured, not drawn: there is no interval to speak of.
  const Bounded norm{roots.softmax, {roots.softmax, roots.softmax}};
  return {name, roots.softmax,
          calibrate_norms(norm, roots.plain, degree, false),
          calibrate_norms(norm, roots.scaled, degree, true)};
}

double root_of_all(const std::vector<double>& roots) {
  double sum = 0;
  for (const double root : roots) sum += root * root;
  return std::sqrt(sum / static_cast<double>(roots.size()));
}

std::vector<RunConstants> all_constants(const RunRoots& plain,
                                        const RunRoots& scaled, int degree) {
  std::vector<RunConstants> found;
  for (std::size_t i = 0; i < plain.own.size(); ++i) {
    found.push_back(
        run_constants(fmt::format("layer {}", i),
                      {plain.own[i], plain.other[i], scaled.other[i]}, degree));
  }
  found.push_back(
      run_constants("all layers",
                    {root_of_all(plain.own), root_of_all(plain.other),
                     root_of_all(scaled.other)},
                    degree));
  return found;
}

}  // namespace

int show_trained(const RunReader& reader, const TheoryRunOptions& options,
                 bool json) {
  const TheoryRunNorms norms = reader.norms(options);
  const auto rows = trained_rows(norms.layers);
  if (json) {
    base::print_json(trained_json(norms, rows));
  } else {
    base::print_text(fmt::format(
        "{} on {}, {} test examples: means over them, by layer and head\n\n{}\n"
        "A bound is a theorem. The Gaussian expectation is not one about "
        "trained weights:\nthe distance to it says how far training has gone "
        "from where theory speaks.\n",
        norms.layers.front().activation, norms.task, norms.examples,
        trained_table(rows)));
  }
  const bool within =
      std::all_of(rows.begin(), rows.end(),
                  [](const TrainedRow& r) { return r.within_bounds; });
  return within ? base::kExitDone : base::kExitFailure;
}

int show_calibrated_run(const RunReader& reader,
                        const TheoryRunOptions& options, int degree,
                        bool json) {
  const RunRoots roots = reader.roots(options, fmt::format("x^{}", degree));
  if (roots.activation != "softmax") {
    throw base::UsageError(fmt::format(
        "--run: {} was trained with {}; the constant is fitted to softmax",
        options.folder, roots.activation));
  }
  base::Json list = base::Json::array();
  std::string text = fmt::format(
      "Root mean square of ||A||_F on the run's own queries and keys, and what "
      "has the same:\n\n  {:<12} {:>8}   {:<20} {}\n",
      "", "softmax", "for this N", "for any N");
  const RunRoots scaled =
      reader.roots(options, fmt::format("x^{}/sqrt(N)", degree));
  for (const RunConstants& c : all_constants(roots, scaled, degree)) {
    list.push_back({{"name", c.name},
                    {"softmax_norm", c.softmax},
                    {"constant", c.fixed.constant.value},
                    {"formula", c.fixed.formula},
                    {"row_constant", c.row.constant.value},
                    {"row_formula", c.row.formula}});
    text += fmt::format("  {:<12} {:>8.4g}   {:<20} {}\n", c.name, c.softmax,
                        c.fixed.formula, c.row.formula);
  }
  if (json) {
    base::print_json(base::Json{{"tokens", roots.tokens},
                                {"degree", degree},
                                {"layers", std::move(list)}});
  } else {
    base::print_text(text);
  }
  return base::kExitDone;
}

}  // namespace polyattn::theory
