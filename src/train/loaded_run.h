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

// The weights of the last checkpoint (averaged, if the run averages), or those
// of the best evaluation; `config` is that of the run. Throws run::RecordError
// if there are none, and what the readers of config and weights throw.
LoadedRun load_run(const std::filesystem::path& folder,
                   const run::Config& config, const TaskShape& shape,
                   bool best);

}  // namespace polyattn::train
