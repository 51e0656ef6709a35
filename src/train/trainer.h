// One run: from a config and data to a folder with records and checkpoints.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "train/progress.h"
#include "train/run/config.h"
#include "train/run/records.h"
#include "train/task_data.h"

namespace polyattn::train {

struct Job {
  run::Config config;  // train.threads above 0
  std::shared_ptr<const TaskData> data;
  std::filesystem::path folder;
  // Goes on from the last checkpoint if there is one. Without it a folder that
  // holds a run already is refused.
  bool resume = false;
  // For run.json. A run that goes on keeps the variant that it has there.
  std::string variant = {};
  std::string command;
  std::string version;
  // Asked after every step: true ends the run with a checkpoint.
  std::function<bool()> stop = [] { return false; };
  std::function<void(const Progress&)> progress = [](const Progress&) {};
  // Something that the user should know and that is no error.
  std::function<void(const std::string&)> warn = [](const std::string&) {};
};

// Trains to the end, or until it diverges or is stopped, and returns what
// run.json says. A run that had ended already is not repeated. Throws
// run::RecordError, run::ConfigError, std::system_error and others if the
// folder cannot be used.
run::RunInfo train(const Job& job);

// What things take on this machine: the median of a few steps, and an
// evaluation of the whole test set, reckoned from a few of its batches.
struct TrialTimes {
  double step = 0;
  double evaluation = 0;
};

// Trains on the first batches for about so many seconds. Nothing is written.
TrialTimes measure_times(const run::Config& config,
                         const std::shared_ptr<const TaskData>& data,
                         double seconds);

}  // namespace polyattn::train
