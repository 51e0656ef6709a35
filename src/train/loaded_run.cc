#include "train/loaded_run.h"

#include <utility>
#include <vector>

#include "polyattn/models/state_file.h"
#include "train/checkpoint.h"
#include "train/run_folder.h"

namespace polyattn::train {
namespace {

namespace fs = std::filesystem;

struct Weights {
  models::NamedTensors tensors;
  std::int64_t step = 0;
};

Weights last_weights(const fs::path& folder) {
  std::vector<std::string> damaged;
  std::optional<Checkpoint> checkpoint;
  if (fs::is_directory(folder / "checkpoints")) {
    checkpoint = Checkpoints(folder / "checkpoints", 1).latest(damaged);
  }
  if (!checkpoint) {
    throw run::RecordError(folder.string() + " has no checkpoint" +
                           (damaged.empty() ? "" : ": " + damaged.front()));
  }
  models::NamedTensors weights = without_prefix(checkpoint->tensors, "model.");
  // Averages are of parameters; buffers come from the model.
  for (auto& [name, average] : without_prefix(checkpoint->tensors, "ema.")) {
    weights[name] = average;
  }
  return {std::move(weights), checkpoint->progress.step};
}

Weights best_weights(const fs::path& folder) {
  const fs::path file = folder / "checkpoints" / "best.safetensors";
  if (!fs::exists(file)) {
    throw run::RecordError(folder.string() +
                           " has not been evaluated: it has no best weights");
  }
  return {models::load_tensors(file), -1};
}

}  // namespace

LoadedRun load_run(const fs::path& folder, const run::Config& config,
                   const TaskShape& shape, bool best) {
  use_path_costs_of(folder);
  LoadedRun loaded;
  Weights weights = best ? best_weights(folder) : last_weights(folder);
  loaded.network = make_network(config, shape);
  models::load_state(loaded.network->module(), weights.tensors);
  loaded.network->module().eval();
  loaded.step = weights.step;
  return loaded;
}

}  // namespace polyattn::train
