#include "bench/quality.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <stdexcept>

#include "base/json_text.h"
#include "base/text_file.h"

namespace polyattn::bench {
namespace {

constexpr std::size_t kMaxMetricsBytes = 256 << 20;

const QualityCurves& curves_of(const std::vector<QualityCurves>& curves,
                               const StepTime& time) {
  const auto found = std::find_if(
      curves.begin(), curves.end(),
      [&](const QualityCurves& c) { return c.model == time.model; });
  if (found == curves.end()) {
    throw std::invalid_argument(
        fmt::format("[time-to-quality] {} by {} has a step time but no runs",
                    time.model, time.by));
  }
  return *found;
}

QualityRow row_of(const StepTime& time, const QualityCurves& curves,
                  double target) {
  const std::vector<CurvePoint> mean = mean_curve(curves);
  QualityRow row{.time = time};
  row.accuracy = mean.empty() ? 0 : mean.back().accuracy;
  row.steps = steps_to(mean, target);
  for (const auto& seed : curves.seeds) {
    row.seed_steps.push_back(steps_to(seed, target).value_or(-1));
  }
  return row;
}

}  // namespace

std::optional<double> QualityRow::processor_seconds() const {
  if (!steps) return std::nullopt;
  return static_cast<double>(*steps) * time.processor_seconds.median;
}

std::vector<CurvePoint> read_curve(const std::filesystem::path& run) {
  const std::filesystem::path path = run / "metrics.jsonl";
  std::istringstream lines(base::read_text_file(path, kMaxMetricsBytes));
  std::vector<CurvePoint> curve;
  try {
    for (std::string line; std::getline(lines, line);) {
      const base::Json record = base::parse_json(line);
      if (record.value("kind", "") != "eval") continue;
      if (!record.contains("accuracy")) continue;
      curve.push_back({record.at("step").get<std::int64_t>(),
                       base::number_of(record.at("accuracy"))});
    }
  } catch (const std::exception& error) {
    throw std::runtime_error(
        fmt::format("cannot read {}: {}", path.string(), error.what()));
  }
  if (curve.empty()) {
    throw std::runtime_error(
        fmt::format("{} has no evaluation with an accuracy", path.string()));
  }
  return curve;
}

std::vector<CurvePoint> mean_curve(const QualityCurves& curves) {
  std::map<std::int64_t, std::vector<double>> by_step;
  for (const auto& seed : curves.seeds) {
    for (const CurvePoint& point : seed) {
      by_step[point.step].push_back(point.accuracy);
    }
  }
  std::vector<CurvePoint> mean;
  for (const auto& [step, values] : by_step) {
    if (values.size() != curves.seeds.size()) continue;
    mean.push_back({step, base::sample_of(values).mean});
  }
  return mean;
}

std::optional<std::int64_t> steps_to(const std::vector<CurvePoint>& curve,
                                     double accuracy) {
  for (const CurvePoint& point : curve) {
    if (point.accuracy >= accuracy) return point.step;
  }
  return std::nullopt;
}

Quality make_quality(const std::string& task,
                     const std::vector<QualityCurves>& curves,
                     const std::vector<StepTime>& times) {
  const std::vector<CurvePoint> softmax =
      curves.empty() ? std::vector<CurvePoint>() : mean_curve(curves.front());
  if (softmax.empty()) {
    throw std::invalid_argument(
        "[time-to-quality] softmax has no evaluation that all seeds reached");
  }
  Quality quality{.task = task,
                  .target = softmax.back().accuracy - kHalfPoint,
                  .curves = curves};
  for (const StepTime& time : times) {
    quality.rows.push_back(
        row_of(time, curves_of(curves, time), quality.target));
  }
  return quality;
}

}  // namespace polyattn::bench
