// What a benchmark found, for people and for programs.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/progress.h"
#include "bench/row.h"

namespace polyattn::bench {

struct Report {
  std::vector<Row> rows;
  // Of `bench linear` alone: lists of objects, as they stand in the JSON.
  nlohmann::ordered_json accuracy = {}, overflow = {}, planner = {};
  // Of `bench time-to-quality`: the same.
  nlohmann::ordered_json time_to_quality = {}, quality_curves = {};
};

// A part of a benchmark, which adds what it finds.
struct Task {
  std::string name;
  double effort = 1;  // about how long it takes, in a unit of the benchmark
  std::function<void(Report&)> run;
};

// One after the other, with a progress bar.
Report run_tasks(const std::vector<Task>& tasks, base::ProgressStyle style);

// Rates of sgemm, the tables and the verdict.
std::string report_text(const Report& report, bool colours);

// version, target, rows; with `bench linear` also accuracy, overflow, planner;
// with `bench time-to-quality` time_to_quality and quality_curves.
// x_q1 and x_q3 are the quartiles of x; what was not measured is null.
nlohmann::ordered_json report_json(const Report& report);

// The rows of report_json, but for their cases. Throws
// nlohmann::json::exception.
std::vector<Row> rows_of(const nlohmann::ordered_json& json);

}  // namespace polyattn::bench
