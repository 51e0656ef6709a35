// Time to quality: how much processor time a model needs until it is as good as
// softmax at its end, less half a point. The product of the steps it takes,
// from the runs of a comparison, and of what a step takes, measured.
//
// Plain data and arithmetic; measuring is in quality_steps.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/statistics.h"
#include "bench/report.h"
#include "bench/row.h"

namespace polyattn::bench {

inline constexpr double kHalfPoint = 0.005;
inline constexpr const char* kOurs = "polyattn";

struct CurvePoint {
  std::int64_t step = 0;
  double accuracy = 0;
};

// Of one activation: its runs, seed by seed.
struct QualityCurves {
  std::string model;  // the activation, with its variant
  std::vector<std::vector<CurvePoint>> seeds;
};

// What a step takes.
struct StepTime {
  std::string model;
  std::string by = kOurs;  // or "PyTorch 2.6.0, scaled_dot_product_attention"
  int threads = 1;
  base::Spread processor_seconds;
  base::Spread seconds;  // on the clock
};

// One line of the table.
struct QualityRow {
  StepTime time;
  double accuracy = 0;  // at the end, mean of the seeds
  // Of the mean curve; none: it never got there.
  std::optional<std::int64_t> steps = {};
  // The same of each seed; -1: never.
  std::vector<std::int64_t> seed_steps = {};

  std::optional<double> processor_seconds() const;
};

struct Quality {
  std::string task;
  double target = 0;  // accuracy
  std::vector<QualityCurves> curves;
  std::vector<QualityRow> rows = {};
};

// The "eval" records of RUN/metrics.jsonl. Throws std::runtime_error that names
// the file if there are none with an accuracy.
std::vector<CurvePoint> read_curve(const std::filesystem::path& run);

// At the steps that all seeds have; empty if there are none.
std::vector<CurvePoint> mean_curve(const QualityCurves& curves);

// The first step at which the accuracy is at least that.
std::optional<std::int64_t> steps_to(const std::vector<CurvePoint>& curve,
                                     double accuracy);

// Softmax is the first of the curves. Times of models without a curve are
// refused: std::invalid_argument.
Quality make_quality(const std::string& task,
                     const std::vector<QualityCurves>& curves,
                     const std::vector<StepTime>& times);

// For people, and as a report whose rows have the polynomials against every
// other softmax. `goal`: of those against PyTorch.
std::string quality_text(const Quality& quality);
Report quality_report(const Quality& quality, std::optional<double> goal);

}  // namespace polyattn::bench
