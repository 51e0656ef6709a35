// From the samples of the rounds to the numbers that are reported.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/statistics.h"
#include "bench/bench_cases.h"

namespace polyattn::bench {

// One entry a round; empty where there is nothing to measure.
struct Samples {
  std::vector<double> seconds;   // of one call of the case
  std::vector<double> baseline;  // the same of the baseline
  std::vector<double> rival;     // the same of the rival
  // Gflop/s before the first round, between the rounds and after the last.
  std::vector<double> sgemm;
};

struct Measurement {
  Figure figure;
  std::string target;                      // instruction set
  std::int64_t extra_bytes = 0;            // workspace and row states
  std::optional<std::int64_t> peak_bytes;  // the same, seen from outside
  base::Spread seconds;                    // of one call
  base::Spread gflops;
  std::optional<base::Spread> sgemm;        // Gflop/s; none without OpenBLAS
  std::optional<base::Spread> ratio_sgemm;  // likewise
  std::optional<base::Spread> baseline_seconds;
  std::optional<base::Spread> rival_seconds;
  std::optional<base::Spread> speedup;  // over the rival
  std::optional<base::Spread> value;  // the figure's number, if it could be had
  std::optional<bool> reached;        // if there is a value and a goal
};

// Fills in everything from `seconds` on. A ratio is formed inside a round;
// each round is held against the mean of the two sgemm around it.
void summarise(const Samples& samples, Measurement& measurement);

}  // namespace polyattn::bench
