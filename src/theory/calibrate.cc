#include "theory/calibrate.h"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "theory/claims.h"

namespace polyattn::theory {
namespace {

std::string calibrated_text(double constant, int degree, bool scaled) {
  const std::string power = degree == 1 ? "x" : fmt::format("x^{}", degree);
  const std::string text =
      fmt::format("{:.4g} {}{}", constant, power, scaled ? "/sqrt(N)" : "");
  Activation::parse(text);  // what is handed out can be pasted
  return text;
}

void check_calibrated_norm(double norm, const char* name) {
  if (norm > 0 && std::isfinite(norm)) return;
  throw std::invalid_argument(
      fmt::format("[calibrate] the norm of {}, {}, is no finite number above 0",
                  name, norm));
}

Bounded softmax_norm_of(const std::vector<double>& weight_sq) {
  const Summary summary = summarize(weight_sq);
  const Interval squares = mean_interval(summary, kShownTail);
  return {.value = std::sqrt(summary.mean),
          .interval = {.low = std::sqrt(squares.low),
                       .high = std::sqrt(squares.high)}};
}

}  // namespace

CalibratedFormula calibrate_norms(const Bounded& softmax_norm,
                                  double monomial_norm, int degree,
                                  bool scaled) {
  check_calibrated_norm(softmax_norm.value, "softmax");
  check_calibrated_norm(monomial_norm, "the polynomial");
  const Bounded constant{
      .value = softmax_norm.value / monomial_norm,
      .interval = {.low = softmax_norm.interval.low / monomial_norm,
                   .high = softmax_norm.interval.high / monomial_norm}};
  return {constant, calibrated_text(constant.value, degree, scaled)};
}

Calibration calibrate(const CalibrateOptions& options, Parallel& parallel) {
  const Setting setting{.tokens = options.tokens,
                        .width = options.width,
                        .causal = options.causal};
  const auto norm = [&](bool scaled) {
    return std::sqrt(
        expected_weight_sq(monomial(options.degree, scaled), setting));
  };
  const double fixed = norm(false), row = norm(true);  // checks the options
  StudyOptions study;
  study.samples = options.samples;
  Calibration result;
  result.samples =
      std::max(gaussian_samples(study, options.tokens), kLeastSamples);
  const std::vector<SampledNorms> norms =
      sample_norms({.tokens = options.tokens,
                    .width = options.width,
                    .samples = result.samples,
                    .seed = options.seed,
                    .stream = Stream::kCalibrate,
                    .cases = {{Activation::parse("softmax"), options.causal}}},
                   parallel);
  result.softmax_norm = softmax_norm_of(norms[0].weight_sq);
  result.fixed =
      calibrate_norms(result.softmax_norm, fixed, options.degree, false);
  result.row = calibrate_norms(result.softmax_norm, row, options.degree, true);
  return result;
}

}  // namespace polyattn::theory
