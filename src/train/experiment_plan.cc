#include "train/experiment_plan.h"

#include <fmt/format.h>

#include "base/text_file.h"
#include "train/run/records.h"

namespace polyattn::train {
namespace {

namespace fs = std::filesystem;

constexpr double kSecondsPerHour = 3600;

void add_runs(const std::vector<PlannedRun>& runs, WorkDone& work) {
  for (const PlannedRun& run : runs) {
    ++work.runs;
    if (!fs::exists(run.folder / "run.json")) continue;
    const run::RunInfo info = run::read_run_info(run.folder);
    work.done += info.state == run::RunState::kFinished ||
                         info.state == run::RunState::kDiverged
                     ? 1
                     : 0;
    work.core_hours += (info.train_seconds + info.eval_seconds) * info.threads /
                       kSecondsPerHour;
  }
}

// The report of a comparison below another heading.
std::string section_of(const ComparePlan& plan) {
  constexpr std::size_t kMaxBytes = 1 << 24;
  const std::string heading =
      fmt::format("## {}\n\n", plan.folder.filename().string());
  const fs::path file = plan.folder / "report.md";
  if (!fs::exists(file)) return heading + "Not run yet.\n";
  const std::string text = base::read_text_file(file, kMaxBytes);
  const std::size_t end = text.find("\n\n");
  return heading + (end == std::string::npos ? text : text.substr(end + 2));
}

}  // namespace

WorkDone& WorkDone::operator+=(const WorkDone& other) {
  runs += other.runs;
  done += other.done;
  core_hours += other.core_hours;
  return *this;
}

ComparePlan plan_of(const run::ExperimentComparison& comparison,
                    const fs::path& folder) {
  ComparePlan plan;
  plan.base = comparison.base;
  plan.arms = comparison.arms;
  plan.seeds = comparison.seeds;
  plan.grid = comparison.grid;
  plan.grid_seeds = comparison.grid_seeds;
  plan.folder = folder / comparison.name;
  return plan;
}

WorkDone work_done(const ComparePlan& plan) {
  WorkDone work;
  add_runs(search_runs(plan), work);
  add_runs(planned_runs(plan), work);
  return work;
}

std::string outcome_markdown(const run::Experiment& experiment,
                             const std::vector<ComparePlan>& plans,
                             const std::string& command) {
  WorkDone work;
  for (const ComparePlan& plan : plans) work += work_done(plan);
  std::string text = fmt::format(
      "# {}\n\n{}\n\n- source: {}\n- command: `{}`\n- {} of {} runs, {:.3g} "
      "core-hours\n",
      experiment.title, experiment.claim, experiment.source, command, work.done,
      work.runs, work.core_hours);
  for (const ComparePlan& plan : plans) text += "\n" + section_of(plan);
  return text;
}

}  // namespace polyattn::train
