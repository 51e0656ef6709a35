// The learning rate: a linear warm-up, then a cosine.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "train/run/config.h"

namespace polyattn::train {

// Of step `step` (from 0) of `steps`, of which L-BFGS has those after
// train.adam_steps.
inline double learning_rate(const run::TrainConfig& options, std::int64_t step,
                            std::int64_t steps) {
  if (options.optimizer == "lbfgs") steps = options.adam_steps;
  const double warm = options.warmup * static_cast<double>(steps);
  const auto at = static_cast<double>(step);
  if (at + 1 < warm) return options.lr * (at + 1) / warm;
  const double length = std::max(1.0, static_cast<double>(steps) - warm);
  const double share = std::clamp((at - warm) / length, 0.0, 1.0);
  const double cosine = (1 + std::cos(std::numbers::pi * share)) / 2;
  return options.lr * (options.final_lr + (1 - options.final_lr) * cosine);
}

}  // namespace polyattn::train
