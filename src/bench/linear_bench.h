// `polyattn bench --linear`: attention in linear time against our dense kernel
// and others, decoding, memory, accuracy, and what the planner makes of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "bench/bench_options.h"
#include "bench/duel.h"
#include "bench/linear_report.h"

namespace polyattn::bench {

struct LinearSettings {
  // What is longer is shortened to this; its goal, which holds for the full
  // length, then does not count.
  std::int64_t longest = std::int64_t{1} << 40;
  int threads = 1;
  DuelRounds rounds = {};
  std::uint64_t seed = 1;
  std::int64_t sgemm_size = 2048;
  bool quick = false;  // a thinner grid of shapes for the planner

  std::int64_t capped(std::int64_t length) const;
  // The goal of what has this length; none if it was shortened.
  std::optional<Goal> goal_at(std::int64_t length, Goal goal) const;
};

LinearSettings linear_settings(const BenchOptions& options, int threads);

// A part of the run, for the progress bar.
struct LinearTask {
  std::string name;
  double effort = 1;  // seconds, about
  std::function<void(LinearReport&)> run;
};

std::vector<LinearTask> linear_speed_tasks(const LinearSettings& settings);
std::vector<LinearTask> linear_decode_tasks(const LinearSettings& settings);
std::vector<LinearTask> linear_accuracy_tasks(const LinearSettings& settings);
std::vector<LinearTask> linear_planner_tasks(const LinearSettings& settings);

LinearReport bench_linear(const BenchOptions& options,
                          base::ProgressStyle style);

}  // namespace polyattn::bench
