// What train and compare are both told: which config, changed how, where.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "train/run/config.h"
#include "train/run/records.h"

namespace polyattn::cli {

struct TrainingOptions {
  std::string config;   // a file
  bool of_run = false;  // config is the folder of a run
  std::string task;
  std::string model;
  std::vector<std::string> settings;  // key=value
  std::string out;
  int threads = 0;
  bool tensorboard = false;
  bool json = false;
};

// --model, --set, --out, --threads, --tensorboard, --json.
void add_training_options(CLI::App& app, TrainingOptions& options);

// The config that the options ask for, with a number of threads. Throws
// run::ConfigError, and UsageError if they contradict each other.
run::Config make_config(const TrainingOptions& options);

// The command line, to repeat it.
std::string command_text();

}  // namespace polyattn::cli
