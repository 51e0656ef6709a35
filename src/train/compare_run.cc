#include "train/compare_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/duration.h"
#include "base/program.h"
#include "train/grid_search.h"
#include "train/run_pool.h"
#include "train/teacher.h"
#include "train/train_bar.h"
#include "train/trainer.h"

namespace polyattn::train {
namespace {

// How long the trial is that a budget is turned into steps by.
constexpr double kTrialSeconds = 3;
// What a trial cannot see: start, records, checkpoints, noise of the machine.
constexpr double kReserve = 0.9;

// Of the search, or of the comparison if there is none. All runs are checked
// against it before the first begins.
std::shared_ptr<const TaskData> first_data(const ComparePlan& plan) {
  const auto runs = plan.grid.empty() ? planned_runs(plan) : search_runs(plan);
  auto data = load_task_data(runs.front().config.task);
  for (const auto& run : runs) {
    check_examples(*data, run.config);
    check_teacher(run.config, shape_of(*data, run.config.task));
  }
  return data;
}

void apply_budget(ComparePlan& plan,
                  const std::shared_ptr<const TaskData>& data) {
  if (plan.budget.empty()) return;
  const double budget = base::parse_duration(plan.budget);
  auto steps = earlier_steps(plan);
  if (!steps) {
    const std::size_t runs =
        search_runs(plan).size() + planned_runs(plan).size();
    steps = steps_within(kReserve * budget * plan.jobs, static_cast<int>(runs),
                         measure_costs(plan, data, kTrialSeconds));
    std::filesystem::create_directories(plan.folder);
    remember_steps(plan, *steps);
  }
  plan.base.train.steps = steps->steps;
  plan.base.record.evaluate = steps->evaluate;
}

bool sets_steps(const std::string& key) {
  return key == "train.steps" || key == "train.epochs";
}

// A budget sets the steps, which nothing else then can.
void check_budget(const ComparePlan& plan) {
  if (plan.budget.empty()) return;
  const auto check = [](const std::string& source, const std::string& key) {
    if (!sets_steps(key)) return;
    throw base::UsageError(fmt::format(
        "{} {}: --budget decides the number of steps; leave out one of "
        "them",
        source, key));
  };
  for (const run::GridAxis& axis : plan.grid) check("--grid", axis.key);
  for (const run::Arm& arm : plan.arms) {
    for (const auto& [key, value] : arm.settings) check("--activations", key);
  }
}

// What is searched has no value of its own.
void check_variants(const ComparePlan& plan) {
  for (const run::Arm& arm : plan.arms) {
    for (const auto& [key, value] : arm.settings) {
      const auto same = [&](const run::GridAxis& a) { return a.key == key; };
      if (std::none_of(plan.grid.begin(), plan.grid.end(), same)) continue;
      throw base::UsageError(fmt::format(
          "{} is searched by --grid and set by {}: leave out one of them", key,
          arm.name()));
    }
  }
}

}  // namespace

void share_cores(ComparePlan& plan, int jobs, int threads) {
  const std::size_t settings = run::settings_of(plan.grid).size();
  const int runs =
      static_cast<int>(plan.arms.size()) *
      std::max(plan.seeds, plan.grid_seeds * static_cast<int>(settings));
  const int cores = base::hardware_threads();
  plan.jobs = jobs > 0 ? jobs : std::max(1, cores / std::max(1, threads));
  plan.jobs = std::min(plan.jobs, runs);
  plan.base.train.threads =
      threads > 0 ? threads : std::max(1, cores / plan.jobs);
}

void check_plan(const ComparePlan& plan) {
  check_variants(plan);
  check_budget(plan);
  planned_runs(plan);
  search_runs(plan);
}

CompareOutcome run_comparison(ComparePlan& plan, const CompareWatch& watch) {
  auto data = first_data(plan);
  apply_budget(plan, data);
  const PoolOptions pool{plan.jobs, watch.command};
  CompareOutcome outcome;
  const bool searching = !plan.grid.empty();
  if (searching) {
    outcome.search = search_settings(plan, data, pool, watch.style);
    if (!outcome.search) return outcome;
    const auto settings = run::settings_of(plan.grid);
    for (const run::GridRow& row : outcome.search->rows) {
      plan.chosen[row.name()] = settings[row.cells[row.chosen].setting];
    }
    watch.searched(*outcome.search);
    data.reset();  // before what takes as much memory
    data = load_task_data(planned_runs(plan).front().config.task);
  }
  const std::vector<PlannedRun> runs = planned_runs(plan);
  {
    TrainBar bar(watch.style, runs.size(), searching ? "test" : "");
    outcome.infos = train_runs(runs, data, pool, bar);
  }
  outcome.complete =
      outcome.infos.size() == runs.size() &&
      std::none_of(outcome.infos.begin(), outcome.infos.end(),
                   [](const run::RunInfo& info) {
                     return info.state == run::RunState::kInterrupted;
                   });
  return outcome;
}

}  // namespace polyattn::train
