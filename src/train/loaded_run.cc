#include "train/loaded_run.h"

#include <utility>
#include <vector>

#include "polyattn/models/state_file.h"
#include "train/checkpoint.h"
#include "train/run_folder.h"

namespace polyattn::train {
namespace {

namespace fs = std::filesystem;

// Averages are of what is of f32; other buffers come from the model.
models::NamedTensors weights_in(const Checkpoint& checkpoint) {
  models::NamedTensors weights = without_prefix(checkpoint.tensors, "model.");
  for (auto& [name, average] : without_prefix(checkpoint.tensors, "ema.")) {
    weights[name] = average;
  }
  return weights;
}

std::int64_t load_last(const fs::path& folder, torch::nn::Module& module) {
  std::vector<std::string> damaged;
  std::optional<Checkpoint> checkpoint;
  if (fs::is_directory(folder / "checkpoints")) {
    checkpoint = Checkpoints(folder / "checkpoints", 1)
                     .latest(damaged, [&](const Checkpoint& found) {
                       models::load_state(module, weights_in(found));
                     });
  }
  if (!checkpoint) {
    throw run::RecordError(folder.string() +
                           " has no checkpoint that can be used" +
                           (damaged.empty() ? "" : ": " + damaged.front()));
  }
  return checkpoint->progress.info.step;
}

std::int64_t load_best(const fs::path& folder, torch::nn::Module& module) {
  const fs::path file = folder / "checkpoints" / "best.safetensors";
  if (!fs::exists(file)) {
    throw run::RecordError(folder.string() +
                           " has not been evaluated: it has no best weights");
  }
  models::load_state(module, models::load_tensors(file));
  return -1;
}

}  // namespace

std::int64_t load_weights(const fs::path& folder, torch::nn::Module& module,
                          bool best) {
  return best ? load_best(folder, module) : load_last(folder, module);
}

LoadedRun load_run(const fs::path& folder, const run::Config& config,
                   const TaskShape& shape, bool best) {
  use_path_costs_of(folder);
  LoadedRun loaded;
  loaded.network = make_network(config, shape);
  torch::nn::Module& module = loaded.network->module();
  loaded.step = load_weights(folder, module, best);
  module.eval();
  return loaded;
}

}  // namespace polyattn::train
