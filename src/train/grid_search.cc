#include "train/grid_search.h"

#include <algorithm>

#include "train/train_bar.h"

namespace polyattn::train {
namespace {

// So many settings are tried for their speed.
constexpr std::size_t kMostTrials = 8;

run::GridPlan grid_plan(const ComparePlan& plan) {
  return {.axes = plan.grid,
          .seeds = plan.grid_seeds,
          .validation = search_task(plan).validation};
}

bool ended(const run::RunInfo& info) {
  return info.state == run::RunState::kFinished ||
         info.state == run::RunState::kDiverged;
}

}  // namespace

std::optional<run::GridOutcome> search_settings(
    const ComparePlan& plan, const std::shared_ptr<const TaskData>& data,
    const PoolOptions& options, base::ProgressStyle style) {
  const run::GridOutcome begun{
      grid_plan(plan), plan.base.task.name, run::Figure::kAccuracy, {}};
  run::check_grid_file(plan.folder, begun);
  std::filesystem::create_directories(plan.folder);
  if (!std::filesystem::exists(plan.folder / "grid.json")) {
    run::write_grid_file(plan.folder, begun);
  }
  const std::vector<PlannedRun> planned = search_runs(plan);
  std::vector<run::RunInfo> infos;
  {
    TrainBar bar(style, planned.size(), "search");
    infos = train_runs(planned, data, options, bar);
  }
  if (infos.size() < planned.size() ||
      !std::all_of(infos.begin(), infos.end(), ended)) {
    return std::nullopt;
  }
  std::vector<run::GridRun> runs;
  for (std::size_t i = 0; i < planned.size(); ++i) {
    runs.push_back({planned[i].setting, infos[i]});
  }
  run::GridOutcome outcome = run::choose_settings(begun.plan, runs);
  run::check_grid_file(plan.folder, outcome);
  run::write_grid_file(plan.folder, outcome);
  return outcome;
}

Costs measure_costs(const ComparePlan& plan,
                    const std::shared_ptr<const TaskData>& data,
                    double seconds) {
  const auto settings = run::settings_of(plan.grid);
  const std::size_t trials = std::min(settings.size(), kMostTrials);
  const auto measure = [&](run::Config config) {
    return measure_together(config, data, plan.jobs,
                            seconds / static_cast<double>(trials));
  };
  run::Config tested = plan.base;
  if (!plan.grid.empty()) tested.task.validation = 0;
  TrialTimes last = measure(tested);
  if (plan.grid.empty()) return {last.step, last.evaluation};
  Costs search;
  for (std::size_t i = 0; i < trials; ++i) {
    run::Config config = run::with_setting(
        plan.base, settings[i * (settings.size() - 1) / (trials - 1)]);
    config.task = search_task(plan);
    const TrialTimes times = measure(config);
    search.step_seconds += times.step / static_cast<double>(trials);
    search.evaluation_seconds += times.evaluation / static_cast<double>(trials);
    last.step = std::max(last.step, times.step);
  }
  const auto first = static_cast<double>(search_runs(plan).size());
  const auto second = static_cast<double>(planned_runs(plan).size());
  const auto mean = [&](double a, double b) {
    return (first * a + second * b) / (first + second);
  };
  return {
      .step_seconds = mean(search.step_seconds, last.step),
      .evaluation_seconds = mean(search.evaluation_seconds, last.evaluation)};
}

}  // namespace polyattn::train
