// What `polyattn bench --linear` found, as a table and as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/statistics.h"
#include "bench/bench_cases.h"

namespace polyattn::bench {

// A figure, with the value that it must reach.
struct LinearRow {
  std::string name;
  int threads = 1;
  std::string unit = {};  // of ours and rival: ms, us, MB, Gflop/s
  std::optional<double> ours = {};
  std::optional<double> rival = {};
  std::string rival_name = {};
  std::optional<base::Spread> value = {};  // what the goal is about
  std::string value_unit = "×";
  std::optional<Goal> goal = {};
  std::string note = {};  // what a reader must know; why there is no value

  std::optional<bool> reached() const;
};

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

struct LinearReport {
  std::vector<LinearRow> rows;
  std::vector<AccuracyRow> accuracy;
  std::vector<OverflowRow> overflow;
  std::vector<PlannerRow> planner;
};

// target, figures, accuracy, overflow, planner.
nlohmann::ordered_json linear_json(const LinearReport& report);

std::string linear_text(const LinearReport& report, bool colours);

}  // namespace polyattn::bench
