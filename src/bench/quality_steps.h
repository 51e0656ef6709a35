// The steps whose time is measured: the same batches for every activation, and
// in a file for PyTorch, with the weights that softmax begins with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "bench/quality.h"
#include "train/examples.h"
#include "train/network.h"
#include "train/run/arm.h"
#include "train/run/config.h"
#include "train/task_data.h"

namespace polyattn::bench {

struct StepPlan {
  std::int64_t batches = 8;  // the first ones of the run, again and again
  int rounds = 3;            // times over them, after one that warms up
  int threads = 1;
};

class QualitySteps {
 public:
  // Of the softmax model. Throws UsageError for settings that the model in
  // PyTorch does not have.
  QualitySteps(const run::Config& softmax,
               std::shared_ptr<const train::TaskData> data,
               const StepPlan& plan);

  // Says which steps these are: a hash of the model, weights and batches.
  const std::string& id() const { return id_; }

  // A safetensors file: weights by their names, batch.I.inputs, .lengths and
  // .targets, and in the metadata what else a step is made of.
  void write(const std::filesystem::path& path) const;

  struct Timed {
    std::vector<StepTime> times;
    std::vector<double> losses;  // of the first model, step by step
  };
  // The models take turns, round by round.
  Timed time(const std::vector<run::Arm>& arms) const;

 private:
  // As softmax begins.
  std::unique_ptr<train::Network> network() const;

  run::Config config_;
  std::shared_ptr<const train::TaskData> data_;
  StepPlan plan_;
  std::shared_ptr<train::Examples> examples_;
  std::vector<train::Batch> batches_;
  std::string description_, id_;
};

}  // namespace polyattn::bench
