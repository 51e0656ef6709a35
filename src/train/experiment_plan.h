// What an experiment runs, how much of it is done, and what came of it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "train/compare_plan.h"
#include "train/run/experiment.h"

namespace polyattn::train {

// The plan of one comparison, in FOLDER/NAME.
ComparePlan plan_of(const run::ExperimentComparison& comparison,
                    const std::filesystem::path& folder);

// By the records of the runs, those of a search too.
struct WorkDone {
  int runs = 0;
  int done = 0;           // finished or diverged
  double core_hours = 0;  // of training and evaluation, begun runs too

  WorkDone& operator+=(const WorkDone& other);
};
WorkDone work_done(const ComparePlan& plan);

// Markdown: the claim, the command, what it cost, and of each comparison what
// its report.md says.
std::string outcome_markdown(const run::Experiment& experiment,
                             const std::vector<ComparePlan>& plans,
                             const std::string& command);

}  // namespace polyattn::train
