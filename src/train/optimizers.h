// The optimizer that a config names.
#pragma once

#include <torch/nn/module.h>

#include <memory>

#include "train/optimizer.h"
#include "train/run/config.h"

namespace polyattn::train {

// train.optimizer: AdamW, or L-BFGS after train.adam_steps steps of AdamW.
std::unique_ptr<Optimizer> make_optimizer(const torch::nn::Module& module,
                                          const run::TrainConfig& options);

}  // namespace polyattn::train
