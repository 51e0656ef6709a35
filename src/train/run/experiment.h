// An experiment: a claim, and the comparisons that test it, as a file.
//
//   experiments/NAME/experiment.toml    what is run (docs/training.md)
//   experiments/NAME/README.md          the claim, and what came of it
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "train/run/arm.h"
#include "train/run/config.h"
#include "train/run/grid.h"

namespace polyattn::run {

struct ExperimentComparison {
  std::string name;  // fit for a folder
  Config base;
  std::vector<Arm> arms;
  int seeds = 3;
  std::vector<GridAxis> grid = {};
  int grid_seeds = 1;
};

struct Experiment {
  std::string name;  // of its folder
  std::string title;
  std::string claim;
  std::string source;  // who made the claim
  std::vector<ExperimentComparison> comparisons;
};

enum class ExperimentSize { kWhole, kQuick };

// Throws ConfigError with all that is wrong, by line and column of `source`.
Experiment parse_experiment(std::string_view text, std::string_view source,
                            ExperimentSize size = ExperimentSize::kWhole);

// FOLDER/experiment.toml.
Experiment read_experiment(const std::filesystem::path& folder,
                           ExperimentSize size = ExperimentSize::kWhole);

// The folders in `folder` that have an experiment.toml, by name.
std::vector<std::filesystem::path> find_experiments(
    const std::filesystem::path& folder);

}  // namespace polyattn::run
