// What every benchmark reports: ours beside its baseline, and the value that
// the goal is about.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/statistics.h"
#include "bench/cases.h"

namespace polyattn::bench {

struct Row {
  std::string name;
  int threads = 1;
  std::optional<BenchCase> subject = {};  // of a row that times the kernels
  std::string unit = "ms";  // of ours and the baseline: ms, us or MB
  std::optional<base::Spread> ours = {};
  std::optional<base::Spread> baseline = {};
  std::string baseline_name = {};
  Measure measure = Measure::kSpeedup;     // what the value is
  std::optional<base::Spread> value = {};  // none if it could not be had
  std::optional<Goal> goal = {};
  std::string note = {};       // what a reader must know; why there is no value
  std::string mode = {};       // instruction set of libtorch
  double items = 0;            // that a call works through; 0: not counted
  std::string item_name = {};  // images, tokens

  // Of kernels alone.
  std::optional<base::Spread> gflops = {};
  std::optional<base::Spread> sgemm = {};  // Gflop/s; none without OpenBLAS
  std::optional<base::Spread> ratio_sgemm = {};
  std::optional<base::Spread> speedup = {};      // where the value is another
  std::optional<std::int64_t> extra_bytes = {};  // workspace and row states
  std::optional<std::int64_t> peak_bytes = {};   // the same, seen from outside

  // None without a goal or a value.
  std::optional<bool> reached() const;
};

// One entry a round, in the unit of the row; empty where there is nothing to
// measure.
struct Samples {
  std::vector<double> ours;
  std::vector<double> baseline;
  // Gflop/s before the first round, between the rounds and after the last.
  std::vector<double> sgemm;
};

// Fills in ours, baseline, value and, of kernels, the rates. A ratio is formed
// inside a round; each round is compared with the mean of the two sgemm around
// it.
void summarise(const Samples& samples, Row& row);

// A spread of one value.
base::Spread exactly(double value);

// Of two lists of the same rows, with the baseline run in two ways, the rows in
// which the baseline did better. Throws std::invalid_argument if the rows
// differ.
std::vector<Row> better_baselines(const std::vector<Row>& a,
                                  const std::vector<Row>& b);

}  // namespace polyattn::bench
