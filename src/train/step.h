// One step of training: batches to an update of the weights.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "train/network.h"
#include "train/optimizer.h"
#include "train/prefetch.h"
#include "train/run/config.h"
#include "train/teacher.h"
#include "train/watch.h"

namespace polyattn::train {

struct StepResult {
  double loss = 0;
  double gradient_norm = 0;
  double lr = 0;
  std::int64_t items = 0;
  std::vector<LayerNorms> norms;  // if they were asked for
  // The step was not made, because the loss or a gradient is not finite: what
  // blew up.
  std::optional<std::string> diverged;
};

class Stepper {
 public:
  // The teacher, if there is one, is that of train.teacher.
  Stepper(const run::Config& config, Network& network, Optimizer& optimizer,
          std::int64_t steps, const Teacher* teacher = nullptr)
      : config_(config),
        network_(network),
        optimizer_(optimizer),
        steps_(steps),
        teacher_(teacher) {}

  // Takes train.accumulate batches. `step` counts from 0. What is watched is
  // the last time that the optimizer asks for the loss.
  StepResult make(Prefetcher& batches, std::int64_t step, bool watch);

 private:
  torch::Tensor loss_of_batch(const Batch& batch);
  // Sums up the gradients; the mean loss. The watch, if any, sees each batch.
  double accumulate(const std::vector<Batch>& batches, std::int64_t step,
                    NormWatch* watch);
  std::string diagnose(const std::vector<Batch>& batches, std::int64_t step,
                       const StepResult& result);

  const run::Config& config_;
  Network& network_;
  Optimizer& optimizer_;
  std::int64_t steps_;
  const Teacher* teacher_;
};

// While it lives, torch computes in bf16 what gains from it, if the config says
// so.
class Autocast {
 public:
  explicit Autocast(const std::string& kind);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool on_;
};

}  // namespace polyattn::train
