// What a benchmark found, for people and for programs.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "bench/row.h"

namespace polyattn::bench {

// Against the reference in double, relative to the root of the mean square of
// what that gives.
struct RelativeError {
  double rms = 0;
  double max = 0;
};

struct AccuracyRow {
  std::string activation;
  std::int64_t n = 0, d = 0;
  RelativeError linear, dense;
};

// The largest factor by which standard normal q and k can be multiplied.
struct OverflowRow {
  std::string activation;
  std::int64_t d = 0;
  std::string scaled;            // what is multiplied by it
  std::optional<double> linear;  // none: no limit was found
  std::optional<double> dense;
};

// A shape of which both paths were timed.
struct PlannerRow {
  BenchCase shape;
  Path chosen = Path::kDense;
  double dense_ms = 0, linear_ms = 0;
  double predicted_dense_ms = 0, predicted_linear_ms = 0;
  double loss = 1;  // time of the chosen path over that of the better one
};

struct Report {
  std::vector<Row> rows;
  // Of `bench linear` alone.
  std::vector<AccuracyRow> accuracy = {};
  std::vector<OverflowRow> overflow = {};
  std::vector<PlannerRow> planner = {};
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

// version, target, rows; with `bench linear` also accuracy, overflow, planner.
// x_q1 and x_q3 are the quartiles of x; what was not measured is null.
nlohmann::ordered_json report_json(const Report& report);

// The rows of report_json, but for their cases. Throws
// nlohmann::json::exception.
std::vector<Row> rows_of(const nlohmann::ordered_json& json);

}  // namespace polyattn::bench
