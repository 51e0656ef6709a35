// What a comparison runs: one config under several activations and seeds.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "train/run/config.h"
#include "train/run/records.h"

namespace polyattn::train {

struct PlannedRun {
  run::Config config;
  std::filesystem::path folder;
};

struct ComparePlan {
  run::Config base;  // its activation and seed do not count
  std::vector<std::string> activations;
  int seeds = 3;
  int jobs = 1;        // runs at a time
  std::string budget;  // as it was typed; empty: none
  std::filesystem::path folder;
};

// Splits each at commas; blanks around the parts go. Throws UsageError for an
// empty part or one that occurs twice, and FormulaError. The parts come back in
// canonical form.
std::vector<std::string> parse_activations(
    const std::vector<std::string>& text);

// An activation as a part of a file name: x3-over-sqrtN.
std::string slug_of(const std::string& activation);

// runs/compare-TASK-xxxxxxxx, where the digits depend on the config and the
// budget: other settings go to another folder.
std::filesystem::path default_folder(const ComparePlan& plan);

// Seed by seed, so that an early end leaves whole comparisons.
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
