// A model in training, a step at a call: the state behind what is timed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "train/adamw.h"
#include "train/network.h"
#include "train/prefetch.h"
#include "train/run/config.h"
#include "train/step.h"

namespace polyattn::bench {

// No steps are too many for this plan.
inline constexpr std::int64_t kForever = 1LL << 40;

class Rig {
 public:
  using MakeBatch = std::function<train::Batch(std::int64_t index)>;

  // The learning rate is that of a run of config.train.steps.
  Rig(const run::Config& config, std::unique_ptr<train::Network> network,
      MakeBatch make);

  // The loss. Throws std::runtime_error if the run diverged.
  double step(bool watch = false);

  torch::nn::Module& module() { return network_->module(); }

 private:
  run::Config config_;
  std::unique_ptr<train::Network> network_;
  train::AdamW optimizer_;
  train::Stepper stepper_;
  train::Prefetcher prefetcher_;
  std::int64_t step_ = 0;
};

}  // namespace polyattn::bench
