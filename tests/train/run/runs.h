// Records of runs, made by hand.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/run/records.h"

namespace polyattn::run::test {

inline RunInfo run_of(const std::string& activation, std::int64_t seed,
                      double accuracy) {
  RunInfo info;
  info.state = RunState::kFinished;
  info.task = "cifar10";
  info.activation = activation;
  info.seed = seed;
  info.step = info.steps = 100;
  info.train_seconds = 30;
  info.peak_mb = 400;
  info.result = {.loss = 1 - accuracy, .accuracy = accuracy};
  info.tokens = 64;
  info.test_count = 10000;
  info.max_weight_norm = 16;
  info.max_jacobian_norm = 4;
  return info;
}

inline RunInfo text_run(const std::string& activation, std::int64_t seed,
                        double bits) {
  RunInfo info = run_of(activation, seed, 0);
  info.task = "sotu";
  info.result = {.loss = bits * 0.6931, .bits_per_byte = bits};
  return info;
}

// Of an equation.
inline RunInfo solution_run(const std::string& activation, std::int64_t seed,
                            double relative_l2) {
  RunInfo info = run_of(activation, seed, 0);
  info.task = "convection";
  info.result = {.loss = relative_l2 * 1e-3,
                 .relative_l1 = 0.9 * relative_l2,
                 .relative_l2 = relative_l2,
                 .terms = {{"boundary", 1e-6}, {"equation", 2.5e-5}}};
  return info;
}

inline RunInfo diverged_run(const std::string& activation, std::int64_t seed) {
  RunInfo info = run_of(activation, seed, 0);
  info.state = RunState::kDiverged;
  info.result.reset();
  info.divergence = Divergence{7, "loss: nan"};
  return info;
}

inline RunInfo running_run(const std::string& activation, std::int64_t seed) {
  RunInfo info = run_of(activation, seed, 0.1);
  info.state = RunState::kRunning;
  return info;
}

// Seeds 1, 2, ...
inline void add_runs(std::vector<RunInfo>& runs, const std::string& activation,
                     const std::vector<double>& accuracies) {
  for (std::size_t i = 0; i < accuracies.size(); ++i) {
    runs.push_back(
        run_of(activation, static_cast<std::int64_t>(i) + 1, accuracies[i]));
  }
}

}  // namespace polyattn::run::test
