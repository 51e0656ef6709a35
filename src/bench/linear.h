// `polyattn bench linear`: attention in linear time against our dense kernel
// and others, decoding, memory, accuracy, and what the planner makes of it.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/options.h"
#include "bench/report.h"

namespace polyattn::bench {

struct LinearSettings {
  // What is longer is shortened to this; its goal, which holds for the full
  // length, then does not count.
  std::int64_t longest = std::int64_t{1} << 40;
  int threads = 1;
  RunOptions run = {};
  bool quick = false;  // a thinner grid of shapes for the planner

  std::int64_t capped(std::int64_t length) const;
  // The goal of what has this length; none if it was shortened.
  std::optional<Goal> goal_at(std::int64_t length, Goal goal) const;
};

LinearSettings linear_settings(const Options& options, int threads);

std::vector<Task> linear_speed_tasks(const LinearSettings& settings);
std::vector<Task> linear_decay_tasks(const LinearSettings& settings);
std::vector<Task> linear_decode_tasks(const LinearSettings& settings);
std::vector<Task> linear_accuracy_tasks(const LinearSettings& settings);
std::vector<Task> linear_planner_tasks(const LinearSettings& settings);

std::vector<Task> linear_tasks(const Options& options);

}  // namespace polyattn::bench
