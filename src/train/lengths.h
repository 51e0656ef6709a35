// A language model at lengths other than that of its training
// (train/run/lengths.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "train/network.h"
#include "train/run/config.h"
#include "train/run/lengths.h"
#include "train/task_data.h"

namespace polyattn::train {

// Throws std::invalid_argument if the task or the model of the config has no
// such lengths: no language model, positions that were learned for fewer
// tokens, a text that is shorter.
void check_lengths(const run::Config& config, const TaskData& data,
                   const std::vector<std::int64_t>& lengths);

// Of a network and data as the config says, each length on all that the config
// evaluates on, from its beginning: a text is cut into examples of this length,
// one after the other. Whole examples go through the model as in training.
// `progress` is called with the share of the work that is done.
run::Lengths evaluate_lengths(Network& network,
                              const std::shared_ptr<const TaskData>& data,
                              const run::Config& config,
                              const std::vector<std::int64_t>& lengths,
                              const std::function<void(double)>& progress = {});

}  // namespace polyattn::train
