// Measures figures.
//
// Machines are shared and their clocks move, so only what was measured side by
// side is compared: a round times the case and its baseline or rival, with
// sgemm before and after; a ratio is formed inside its round, and the median
// over the rounds is reported with its quartiles.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bench/bench_inputs.h"
#include "bench/measurement.h"
#include "bench/sgemm.h"

namespace polyattn::bench {

struct RunOptions {
  int rounds = 7;
  double min_seconds = 0.05;  // what a round spends in the case, at least
  std::uint64_t seed = 1;
  std::int64_t sgemm_size = 2048;
};

// Memory takes one round. Ratios of two cases, whose goals are the closest
// ones, take half as many again as options.rounds.
int rounds_of(const Figure& figure, const RunOptions& options);

// About how long the figure takes, in any unit: for the time that is left.
double effort_of(const Figure& figure, const RunOptions& options);

class Bench {
 public:
  explicit Bench(const RunOptions& options);

  // Throws std::runtime_error if the result of the case is wrong.
  Measurement measure(const Figure& figure);

 private:
  void run_rounds(const Figure& figure, CaseRunner& runner, Samples& samples);
  void add_sgemm(int threads, std::vector<double>& gflops);

  RunOptions options_;
  std::optional<SgemmYardstick> yardstick_;  // none without OpenBLAS
};

}  // namespace polyattn::bench
