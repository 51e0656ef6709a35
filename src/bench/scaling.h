// `polyattn bench scaling`: what the schedule of a call leaves of 2 to 256
// workers.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/cases.h"
#include "bench/options.h"

namespace polyattn::bench {

// At the end of a run.
inline constexpr double kBarrierSeconds = 10e-6;

struct ScalingCase {
  BenchCase shape;
  double goal = 0;  // with 64 workers
};

std::vector<ScalingCase> scaling_cases();

struct ScalingRow {
  std::string name;
  std::int64_t runs = 0;            // of more than one task
  std::int64_t tasks = 0;           // of all runs
  double seconds = 0;               // of one worker
  std::vector<double> bounds = {};  // for each of kScalingWorkers
  double goal = 0;
};

inline constexpr int kScalingWorkers[] = {1, 2, 4, 8, 16, 32, 64, 128, 256};
inline constexpr int kGoalWorkers = 64;

double bound_at(const ScalingRow& row, int workers);

// Throws UsageError if --only leaves nothing.
std::vector<ScalingRow> bench_scaling(const Options& options);

std::string scaling_text(const std::vector<ScalingRow>& rows);
nlohmann::ordered_json scaling_json(const std::vector<ScalingRow>& rows);

}  // namespace polyattn::bench
