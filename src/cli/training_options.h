// What train and compare are both told: which config, changed how, where.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "run/config.h"
#include "run/records.h"

namespace polyattn::cli {

struct TrainingOptions {
  std::string config;  // a file
  std::string task;
  std::vector<std::string> settings;  // key=value
  std::string out;
  int threads = 0;
  bool tensorboard = false;
  bool json = false;
};

// --set, --out, --threads, --tensorboard, --json.
void add_training_options(CLI::App& app, TrainingOptions& options);

// The config that the options ask for, with a number of threads. Throws
// run::ConfigError, and UsageError if they contradict each other.
run::Config make_config(const TrainingOptions& options);

// "accuracy 87.12 %, loss 0.353" or "2.41 bits per byte"; for a run that
// diverged, where and why.
std::string outcome_text(const run::RunInfo& info);

// An activation as a part of a file name: x3-over-sqrtN.
std::string slug_of(const std::string& activation);

// The command line, to repeat it.
std::string command_text();

}  // namespace polyattn::cli
