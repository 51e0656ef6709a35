// Trains several runs at a time, each in a process of its own.
//
// Small models do not fill two cores with one step, but two runs do: side by
// side on one thread each they are done sooner than one after the other on two.
// Processes, because random numbers and threads of libtorch belong to a
// process; and because the memory of a run can be measured so. They share the
// data, which is read before they split.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "train/compare_plan.h"
#include "train/run/records.h"
#include "train/task_data.h"
#include "train/train_bar.h"
#include "train/trainer.h"

namespace polyattn::train {

struct PoolOptions {
  int jobs = 1;
  std::string command;
};

// What became of the runs, in their order, as far as they were begun; the last
// ones may be missing if StopSignals said stop. libtorch must not have started
// threads in this process. Throws std::runtime_error with the text of what a
// run threw, after the others have been saved.
std::vector<run::RunInfo> train_runs(
    const std::vector<PlannedRun>& runs,
    const std::shared_ptr<const TaskData>& data, const PoolOptions& options,
    TrainBar& bar);

// measure_times() in so many processes at once, each with the same
// config: the longest times.
TrialTimes measure_together(const run::Config& config,
                            const std::shared_ptr<const TaskData>& data,
                            int jobs, double seconds);

}  // namespace polyattn::train
