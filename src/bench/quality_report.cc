// What `polyattn bench time-to-quality` prints.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text_table.h"
#include "bench/quality.h"

namespace polyattn::bench {
namespace {

using Json = nlohmann::ordered_json;

// Steps of the seeds, those that got there.
std::string seeds_text(const QualityRow& row) {
  std::vector<std::string> parts;
  for (const std::int64_t steps : row.seed_steps) {
    parts.push_back(steps < 0 ? "never" : std::to_string(steps));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string duration(std::optional<double> seconds) {
  return seconds ? fmt::format("{:.1f} s", *seconds) : "never";
}

// Softmax, by whomever, is what polynomials are held against.
bool is_softmax(const Quality& quality, const QualityRow& row) {
  return row.time.model == quality.curves.front().model;
}

Row comparison_row(const Quality& quality, const QualityRow& ours,
                   const QualityRow& softmax, std::optional<double> goal) {
  Row row{
      .name = fmt::format("time to {:.1f} % on {}, {}", 100 * quality.target,
                          quality.task, ours.time.model),
      .threads = ours.time.threads,
      .unit = "s",
      .baseline_name = softmax.time.model + " by " + softmax.time.by};
  if (goal && softmax.time.by != kOurs) row.goal = Goal{Bound::kAtLeast, *goal};
  const auto a = ours.processor_seconds();
  const auto b = softmax.processor_seconds();
  if (a) row.ours = exactly(*a);
  if (b) row.baseline = exactly(*b);
  // Softmax gets there by definition. Who never does is infinitely slow.
  row.value = exactly(a && b ? *b / *a : 0);
  if (!a) row.note = ours.time.model + " never got there";
  return row;
}

Json table_row(const Quality& quality, const QualityRow& row) {
  const auto seconds = row.processor_seconds();
  return {{"model", row.time.model},
          {"by", row.time.by},
          {"threads", row.time.threads},
          {"accuracy", row.accuracy},
          {"target", quality.target},
          {"steps", row.steps ? Json(*row.steps) : Json()},
          {"steps_by_seed", seeds_text(row)},
          {"step_processor_seconds", row.time.processor_seconds.median},
          {"step_seconds", row.time.seconds.median},
          {"processor_seconds", seconds ? Json(*seconds) : Json()}};
}

Json curve_json(const Quality& quality, const QualityRow& row) {
  Json curve{{"model", row.time.model},
             {"by", row.time.by},
             {"target", quality.target},
             {"processor_seconds", Json::array()},
             {"accuracy", Json::array()}};
  for (const QualityCurves& curves : quality.curves) {
    if (curves.model != row.time.model) continue;
    for (const CurvePoint& point : mean_curve(curves)) {
      curve["processor_seconds"].push_back(static_cast<double>(point.step) *
                                           row.time.processor_seconds.median);
      curve["accuracy"].push_back(point.accuracy);
    }
  }
  return curve;
}

}  // namespace

std::string quality_text(const Quality& quality) {
  base::TextTable table({{"model", base::Align::kLeft},
                         {"by", base::Align::kLeft},
                         {"threads"},
                         {"accuracy at the end"},
                         {"steps"},
                         {"of the seeds"},
                         {"processor time a step"},
                         {"to quality"}});
  for (const QualityRow& row : quality.rows) {
    table.add_row(
        {row.time.model, row.time.by, std::to_string(row.time.threads),
         fmt::format("{:.1f} %", 100 * row.accuracy),
         row.steps ? std::to_string(*row.steps) : "never", seeds_text(row),
         fmt::format("{:.3f} s", row.time.processor_seconds.median),
         duration(row.processor_seconds())});
  }
  return fmt::format(
      "{}: steps until the mean of the seeds has an accuracy of {:.1f} %, "
      "softmax's at its end less half a point\n\n{}\n",
      quality.task, 100 * quality.target, table.to_string());
}

Report quality_report(const Quality& quality, std::optional<double> goal) {
  Report report;
  report.time_to_quality = Json::array();
  report.quality_curves = Json::array();
  for (const QualityRow& row : quality.rows) {
    report.time_to_quality.push_back(table_row(quality, row));
    report.quality_curves.push_back(curve_json(quality, row));
    if (is_softmax(quality, row)) continue;
    for (const QualityRow& other : quality.rows) {
      if (!is_softmax(quality, other)) continue;
      report.rows.push_back(comparison_row(quality, row, other, goal));
    }
  }
  return report;
}

}  // namespace polyattn::bench
