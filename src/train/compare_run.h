// A comparison from its plan to its runs: the search, if there is one, and the
// test.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "train/compare_plan.h"

namespace polyattn::train {

// As many runs side by side as there are cores, with the threads that are left;
// 0: not said.
void share_cores(ComparePlan& plan, int jobs, int threads);

// Throws ConfigError and UsageError for what cannot be run, before anything
// does.
void check_plan(const ComparePlan& plan);

struct CompareWatch {
  std::string command;  // for run.json
  base::ProgressStyle style;
  // Called once a search has chosen.
  std::function<void(const run::GridOutcome&)> searched;
};

struct CompareOutcome {
  std::vector<run::RunInfo> infos;         // of the test, as far as begun
  std::optional<run::GridOutcome> search;  // if there was one, and it ended
  bool complete = false;                   // StopSignals did not say stop
};

// Goes on where it was interrupted. The plan gets the steps of its budget and
// the settings that the search chose. The caller has StopSignals. Throws what
// load_task_data(), search_settings() and train_runs() throw.
CompareOutcome run_comparison(ComparePlan& plan, const CompareWatch& watch);

}  // namespace polyattn::train
