// Measures cases of the kernels, with sgemm before and after every round.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "bench/inputs.h"
#include "bench/row.h"
#include "bench/sgemm.h"
#include "bench/timed.h"

namespace polyattn::bench {

struct RunOptions {
  Rounds rounds = {};
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
  Row measure(const Figure& figure);

 private:
  Samples run_rounds(const Figure& figure, CaseRunner& runner, Row& row);
  void add_sgemm(int threads, std::vector<double>& gflops);

  RunOptions options_;
  std::optional<SgemmYardstick> yardstick_;  // none without OpenBLAS
};

}  // namespace polyattn::bench
