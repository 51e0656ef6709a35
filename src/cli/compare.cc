#include "cli/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/duration.h"
#include "base/output.h"
#include "base/program.h"
#include "base/stop_signals.h"
#include "base/text_file.h"
#include "cli/report.h"
#include "train/run_pool.h"
#include "train/train_bar.h"
#include "train/trainer.h"

namespace polyattn::cli {
namespace {

// How long the trial is that a budget is turned into steps by.
constexpr double kTrialSeconds = 3;
// What a trial cannot see: start, records, checkpoints, noise of the machine.
constexpr double kReserve = 0.9;

std::string report_text(const run::Comparison& comparison,
                        const std::vector<run::RunInfo>& infos,
                        const train::ComparePlan& plan) {
  const run::RunInfo& first = infos.front();
  return fmt::format(
      "# Comparison on {}\n\n{}\n"
      "- command: `{}`\n- {} steps a run, {} parameters, {} threads\n"
      "- polyattn {} ({}), {}, {}\n- runs: {}\n",
      comparison.task, run::comparison_markdown(comparison), first.command,
      first.steps, first.parameters, first.threads, first.version,
      first.instruction_set, first.machine, first.started,
      plan.folder.string());
}

// Of those that were begun: the folder may hold other runs.
std::vector<std::filesystem::path> begun_folders(
    const train::ComparePlan& plan) {
  std::vector<std::filesystem::path> folders;
  for (const train::PlannedRun& run : train::planned_runs(plan)) {
    if (std::filesystem::exists(run.folder / "run.json")) {
      folders.push_back(run.folder);
    }
  }
  return folders;
}

}  // namespace

CompareCommand::CompareCommand(CLI::App& parent)
    : app_(parent.add_subcommand("compare", kAboutCompare)) {
  app_->footer(
      "Every activation starts from the same weights and sees the same "
      "batches. "
      "Interrupted,\nthe same command goes on where it stopped; finished runs "
      "are not repeated.\n\n"
      "Examples:\n"
      "  polyattn compare --budget 5m\n"
      "  polyattn compare --task cifar10 --activations 'softmax,x^3/sqrt(N)' "
      "--seeds 5\n"
      "  polyattn compare --config configs/sotu.toml --set train.steps=600");
  app_->add_option(
      "--task", options_.task,
      "fashion-mnist (default), cifar10, sotu, listops, imdb, ...");
  app_->add_option("--config", options_.config, "Instead of --task: a file")
      ->type_name("FILE");
  app_->add_option("--activations", activations_,
                   "Formulas, separated by commas; the first is what the "
                   "others are held against")
      ->allow_extra_args(false)
      ->capture_default_str();
  app_->add_option("--seeds", seeds_, "How many: 1 to this number")
      ->check(CLI::Range(1, 1000).description(""))
      ->capture_default_str();
  app_->add_option("--budget", budget_,
                   "Time for all runs together, such as 5m: sets the number "
                   "of steps")
      ->type_name("TIME");
  app_->add_option("--jobs", jobs_,
                   "Runs at a time; default: one for each core")
      ->check(CLI::Range(1, 1024).description(""));
  add_training_options(*app_, options_);
}

train::ComparePlan CompareCommand::make_plan() const {
  train::ComparePlan plan;
  plan.base = make_config(options_);
  plan.activations = train::parse_activations(activations_);
  plan.seeds = seeds_;
  share_cores(plan);
  plan.budget = budget_;
  plan.folder = options_.out.empty() ? train::default_folder(plan)
                                     : std::filesystem::path(options_.out);
  train::planned_runs(plan);  // refuses what is wrong before anything runs
  return plan;
}

// As many runs side by side as there are cores, with the threads that are left.
void CompareCommand::share_cores(train::ComparePlan& plan) const {
  const int runs = plan.seeds * static_cast<int>(plan.activations.size());
  const int cores = base::hardware_threads();
  const int threads = options_.threads;
  plan.jobs = jobs_ > 0 ? jobs_ : std::max(1, cores / std::max(1, threads));
  plan.jobs = std::min(plan.jobs, runs);
  plan.base.train.threads =
      threads > 0 ? threads : std::max(1, cores / plan.jobs);
}

void CompareCommand::apply_budget(
    train::ComparePlan& plan,
    const std::shared_ptr<const train::TaskData>& data) const {
  if (plan.budget.empty()) return;
  const double budget = base::parse_duration(plan.budget);
  auto steps = train::earlier_steps(plan);
  if (!steps) {
    const train::TrialTimes times =
        train::measure_together(plan.base, data, plan.jobs, kTrialSeconds);
    steps = train::steps_within(
        kReserve * budget * plan.jobs,
        plan.seeds * static_cast<int>(plan.activations.size()),
        {.step_seconds = times.step, .evaluation_seconds = times.evaluation});
    std::filesystem::create_directories(plan.folder);
    train::remember_steps(plan, *steps);
  }
  plan.base.train.steps = steps->steps;
  plan.base.record.evaluate = steps->evaluate;
}

void CompareCommand::show(const train::ComparePlan& plan,
                          const std::vector<run::RunInfo>& infos) const {
  const run::Comparison comparison = run::compare_runs(infos);
  const std::string report = (plan.folder / "report.md").string();
  base::write_text_file(report, report_text(comparison, infos, plan));
  base::Json json = run::comparison_json(comparison);
  json["folder"] = plan.folder.string();
  base::write_text_file(plan.folder / "comparison.json", base::json_text(json));
  const auto page =
      write_extra_report(begun_folders(plan), plan.folder / "report.html");
  if (options_.json) {
    json["report"] = page ? base::Json(page->string()) : base::Json(nullptr);
    return base::print_json(json);
  }
  base::print_text(
      fmt::format("\n{}\n{}\n\n{}\n", run::comparison_table(comparison),
                  run::verdict(comparison), page ? page->string() : report));
}

int CompareCommand::run() {
  train::ComparePlan plan = make_plan();
  const auto data = train::load_task_data(plan.base.task);
  apply_budget(plan, data);
  const std::vector<train::PlannedRun> runs = train::planned_runs(plan);
  const base::StopSignals signals;
  std::vector<run::RunInfo> infos;
  {
    train::TrainBar bar(base::progress_style(options_.json), runs.size());
    infos = train::train_runs(runs, data, {plan.jobs, command_text()}, bar);
  }
  if (!infos.empty()) show(plan, infos);
  const bool complete =
      infos.size() == runs.size() &&
      std::none_of(infos.begin(), infos.end(), [](const run::RunInfo& info) {
        return info.state == run::RunState::kInterrupted;
      });
  if (complete) return base::kExitDone;
  fmt::print(stderr, "interrupted: the same command goes on\n");
  return base::StopSignals::exit_code();
}

}  // namespace polyattn::cli
