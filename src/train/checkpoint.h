// Checkpoints of a run: all that it takes to go on as if nothing had happened.
//
//   checkpoints/step-00000400.safetensors   model.*, adam.m.*, adam.v.*, ema.*
//   checkpoints/step-00000400.json          Progress; written last
//   checkpoints/best.safetensors            the weights alone
//   checkpoints/best.json                   their step and figures
//
// Both files are written beside their place and renamed, the JSON after the
// tensors are on the disk: a checkpoint whose JSON is there is whole. Random
// numbers need no state: they are functions of the step (train/random.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "polyattn/models/weights.h"
#include "train/progress.h"

namespace polyattn::train {

struct Checkpoint {
  Progress progress;
  models::NamedTensors tensors;
};

class Checkpoints {
 public:
  // Keeps the last `keep` in this folder, which is made if need be.
  Checkpoints(std::filesystem::path folder, std::int64_t keep);

  void save(const Checkpoint& checkpoint);
  void save_best(const models::NamedTensors& weights, std::int64_t step,
                 const run::Evaluation& evaluation);

  // The newest that can be read and that `use` takes, which throws otherwise;
  // nothing if there is none. `damaged` gets a line for each newer one. These
  // stay until the next save(): until then nothing better is there.
  using Use = std::function<void(const Checkpoint&)>;
  std::optional<Checkpoint> latest(
      std::vector<std::string>& damaged,
      const Use& use = [](const Checkpoint&) {});

  // Removes tensors without their JSON, which killed processes leave. Nobody
  // else may be writing.
  void remove_orphans() const;

 private:
  std::vector<std::int64_t> steps() const;  // that have a JSON, ascending
  Checkpoint load(std::int64_t step) const;
  void remove(std::int64_t step) const;
  std::filesystem::path path(std::int64_t step, const char* extension) const;
  void prune();

  std::filesystem::path folder_;
  std::int64_t keep_;
  std::vector<std::int64_t> damaged_;  // steps that latest() had to skip
};

// The entries of a state that begin with the prefix, without it.
models::NamedTensors without_prefix(const models::NamedTensors& tensors,
                                    const std::string& prefix);

}  // namespace polyattn::train
