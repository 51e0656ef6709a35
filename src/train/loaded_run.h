// The model of a finished or unfinished run, from its folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "train/network.h"
#include "train/run/config.h"

namespace polyattn::train {

struct LoadedRun {
  std::unique_ptr<Network> network;  // in the mode of use
  std::int64_t step = 0;
};

// Puts the weights of the last checkpoint (averaged, if the run averages), or
// those of the best evaluation, into the model of the run, and returns their
// step; -1 for the best. Throws run::RecordError if there are none, and what
// the readers of weights throw.
std::int64_t load_weights(const std::filesystem::path& folder,
                          torch::nn::Module& module, bool best);

// The model with these weights, and attention as the run had it; `config` is
// that of the run. Throws what load_weights() and the readers of config throw.
LoadedRun load_run(const std::filesystem::path& folder,
                   const run::Config& config, const TaskShape& shape,
                   bool best);

}  // namespace polyattn::train
