// What a comparison runs: one config under several activations and seeds; with
// a grid first the search for the settings of each.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "train/run/arm.h"
#include "train/run/config.h"
#include "train/run/grid.h"
#include "train/run/records.h"

namespace polyattn::train {

struct PlannedRun {
  run::Config config;
  std::filesystem::path folder;
  std::size_t setting = 0;  // of a search: its number
  std::string variant;      // of the activation; empty: none
  std::string label;        // both, and the setting if there is one
};

struct ComparePlan {
  run::Config base;  // its activation and seed do not count
  std::vector<run::Arm> arms;
  int seeds = 3;
  int jobs = 1;        // runs at a time
  std::string budget;  // as it was typed; empty: none
  std::filesystem::path folder;
  std::vector<run::GridAxis> grid = {};  // empty: no search
  int grid_seeds = 1;
  // By the names of the arms, once the search is done.
  std::map<std::string, run::GridSetting> chosen = {};
};

// A formula as a part of a file name: x3-over-sqrtN.
std::string slug_of(const std::string& activation);

// runs/compare-TASK-xxxxxxxx, where the digits depend on the config, the budget
// and the grid: other settings go to another folder.
std::filesystem::path default_folder(const ComparePlan& plan);

// The data of the search: task.validation is a tenth if the config has none.
run::TaskConfig search_task(const ComparePlan& plan);

// The search: every arm under every setting, seed by seed, in FOLDER/grid. A
// setting that changes nothing for an arm is left out for it. Throws
// ConfigError with everything that is wrong in any of them.
std::vector<PlannedRun> search_runs(const ComparePlan& plan);

// Seed by seed, so that an early end leaves whole comparisons. After a search
// with the settings that were chosen, seeds that it has not seen, and on all
// training data.
std::vector<PlannedRun> planned_runs(const ComparePlan& plan);

// How many steps, and how often an evaluation, make all runs together take
// about as long as the budget.
struct BudgetedSteps {
  std::int64_t steps = 0;
  std::int64_t evaluate = 0;
};
struct Costs {
  double step_seconds = 0;
  double evaluation_seconds = 0;
};
BudgetedSteps steps_within(double budget_seconds, int runs, const Costs& costs);

// The same for a folder in which it was decided before (compare.json);
// otherwise nothing.
std::optional<BudgetedSteps> earlier_steps(const ComparePlan& plan);
void remember_steps(const ComparePlan& plan, const BudgetedSteps& steps);

}  // namespace polyattn::train
