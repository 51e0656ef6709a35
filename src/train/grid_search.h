// The search of a comparison: trains every activation under every setting of
// the grid on validation data, and chooses.
#pragma once

#include <memory>
#include <optional>

#include "base/progress.h"
#include "train/compare_plan.h"
#include "train/run_pool.h"

namespace polyattn::train {

// plan.folder/grid.json is checked before and has the choice after. Nothing if
// StopSignals said stop. `data` is that of search_task(). Throws what
// train_runs() and check_grid_file() throw.
std::optional<run::GridOutcome> search_settings(
    const ComparePlan& plan, const std::shared_ptr<const TaskData>& data,
    const PoolOptions& options, base::ProgressStyle style);

// What a step and an evaluation take, as a mean over all runs of the plan: the
// settings of a search may differ in size, and any of them may be chosen.
// `data` is that of the search, if there is one. The trials take about so many
// seconds.
Costs measure_costs(const ComparePlan& plan,
                    const std::shared_ptr<const TaskData>& data,
                    double seconds);

}  // namespace polyattn::train
