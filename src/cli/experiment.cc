#include "cli/experiment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/output.h"
#include "base/program.h"
#include "base/stop_signals.h"
#include "base/text_file.h"
#include "base/text_table.h"
#include "cli/compare_report.h"
#include "cli/training_options.h"
#include "train/compare_run.h"
#include "train/experiment_plan.h"
#include "train/run/suggest.h"

namespace polyattn::cli {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_name(const char* what, const std::string& name,
                              const std::vector<std::string>& known) {
  const std::vector<std::string_view> names(known.begin(), known.end());
  const auto near = run::nearest(name, names);
  throw base::UsageError(
      fmt::format("there is no {} '{}'; {}", what, name,
                  near ? fmt::format("did you mean {}?", *near)
                       : fmt::format("there are {}", fmt::join(known, ", "))));
}

std::vector<std::string> names_of(const std::vector<fs::path>& folders) {
  std::vector<std::string> names;
  names.reserve(folders.size());
  for (const fs::path& folder : folders) {
    names.push_back(folder.filename().string());
  }
  return names;
}

train::WorkDone work_of(const std::vector<train::ComparePlan>& plans) {
  train::WorkDone work;
  for (const train::ComparePlan& plan : plans) work += train::work_done(plan);
  return work;
}

}  // namespace

ExperimentCommand::ExperimentCommand(CLI::App& parent)
    : Command(parent.add_subcommand("experiment", kAboutExperiment)) {
  app_->footer(
      "An experiment is a folder with a claim and the comparisons that test "
      "it\n(experiments/README.md). Interrupted, the same command goes on.\n\n"
      "Examples:\n"
      "  polyattn experiment list\n"
      "  polyattn experiment run parts --quick\n"
      "  polyattn experiment run scaled-polynomials --only cifar10 --jobs 1");
  app_->require_subcommand(1);
  add_list();
  add_run();
}

CLI::App* ExperimentCommand::add(const char* name, const char* what) {
  CLI::App* sub = app_->add_subcommand(name, what);
  sub->add_option("--experiments", experiments_, "Where the experiments are")
      ->type_name("DIR")
      ->capture_default_str();
  sub->add_flag("--json", json_, "Print JSON instead of text");
  return sub;
}

void ExperimentCommand::add_list() {
  add("list", "What there is, and how much of it is done");
}

void ExperimentCommand::add_run() {
  CLI::App* sub = add("run", "Run the comparisons of an experiment");
  sub->add_option("name", name_, "Experiment, as list names it")->required();
  sub->add_flag("--quick", quick_,
                "A version of seconds, to see that it works");
  sub->add_option("--only", only_, "This comparison alone")->type_name("NAME");
  sub->add_option("--out", out_,
                  "Folder for what comes out; default: runs/experiments/NAME, "
                  "with --quick runs/experiments-quick/NAME")
      ->type_name("DIR");
  sub->add_option("--jobs", jobs_, "Runs at a time; default: one for each core")
      ->check(CLI::Range(1, 1024).description(""));
  sub->add_option("--threads", threads_, "Threads of a run")
      ->check(CLI::Range(1, 1024).description(""));
}

int ExperimentCommand::run() {
  return app_->got_subcommand("list") ? list() : run_one();
}

std::vector<fs::path> ExperimentCommand::folders() const {
  if (!fs::is_directory(experiments_)) {
    throw base::UsageError(fmt::format(
        "there is no folder {}: --experiments names another", experiments_));
  }
  return run::find_experiments(experiments_);
}

fs::path ExperimentCommand::output_of(const std::string& name) const {
  if (!out_.empty()) return out_;
  return fs::path("runs") / (quick_ ? "experiments-quick" : "experiments") /
         name;
}

std::vector<train::ComparePlan> ExperimentCommand::plans_of(
    const run::Experiment& experiment) const {
  std::vector<train::ComparePlan> plans;
  for (const auto& comparison : experiment.comparisons) {
    plans.push_back(train::plan_of(comparison, output_of(experiment.name)));
    train::share_cores(plans.back(), jobs_, threads_);
    train::check_plan(plans.back());
  }
  return plans;
}

int ExperimentCommand::list() const {
  base::Json json = base::Json::array();
  base::TextTable table({{"experiment", base::Align::kLeft},
                         {"title", base::Align::kLeft},
                         {"comparisons"},
                         {"runs"},
                         {"done"}});
  for (const fs::path& folder : folders()) {
    const run::Experiment experiment = run::read_experiment(folder);
    const train::WorkDone work = work_of(plans_of(experiment));
    const std::size_t comparisons = experiment.comparisons.size();
    json.push_back({{"name", experiment.name},
                    {"title", experiment.title},
                    {"claim", experiment.claim},
                    {"source", experiment.source},
                    {"comparisons", comparisons},
                    {"runs", work.runs},
                    {"done", work.done},
                    {"core_hours", work.core_hours}});
    table.add_row({experiment.name, experiment.title,
                   std::to_string(comparisons), std::to_string(work.runs),
                   std::to_string(work.done)});
  }
  if (json_) {
    base::print_json(json);
  } else {
    base::print_text(table.to_string());
  }
  return base::kExitDone;
}

run::Experiment ExperimentCommand::experiment() const {
  const std::vector<fs::path> all = folders();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& f) {
    return f.filename() == name_;
  });
  if (found == all.end()) refuse_name("experiment", name_, names_of(all));
  return run::read_experiment(*found, quick_ ? run::ExperimentSize::kQuick
                                             : run::ExperimentSize::kWhole);
}

std::vector<bool> ExperimentCommand::chosen(
    const run::Experiment& experiment) const {
  std::vector<bool> all;
  std::vector<std::string> names;
  for (const auto& comparison : experiment.comparisons) {
    names.push_back(comparison.name);
    all.push_back(only_.empty() || comparison.name == only_);
  }
  if (std::find(all.begin(), all.end(), true) == all.end()) {
    refuse_name("comparison", only_, names);
  }
  return all;
}

std::optional<base::Json> ExperimentCommand::compare(
    train::ComparePlan plan) const {
  if (!json_) {
    base::print_text(fmt::format("\n{}\n", plan.folder.filename().string()));
    if (!plan.grid.empty()) announce_search(plan);
  }
  const train::CompareOutcome outcome = train::run_comparison(
      plan, {.command = command_text(),
             .style = base::progress_style(json_),
             .searched = [this](const run::GridOutcome& search) {
               if (!json_) print_search(search);
             }});
  if (outcome.infos.empty()) return std::nullopt;
  const ComparisonReport report = write_comparison(plan, outcome);
  if (!json_) print_comparison(report);
  base::Json json = {{"name", plan.folder.filename().string()},
                     {"complete", outcome.complete},
                     {"core_hours", train::work_done(plan).core_hours}};
  json.update(report.json);
  return json;
}

int ExperimentCommand::run_one() const {
  const run::Experiment experiment = this->experiment();
  const std::vector<train::ComparePlan> plans = plans_of(experiment);
  const std::vector<bool> wanted = chosen(experiment);
  const base::StopSignals signals;
  base::Json comparisons = base::Json::array();
  bool complete = true;
  for (std::size_t i = 0; i < plans.size() && complete; ++i) {
    if (!wanted[i]) continue;
    const auto json = compare(plans[i]);
    complete = json && json->at("complete").get<bool>();
    if (json) comparisons.push_back(*json);
  }
  const fs::path outcome = output_of(experiment.name) / "outcome.md";
  fs::create_directories(outcome.parent_path());
  base::write_text_file(
      outcome, train::outcome_markdown(experiment, plans, command_text()));
  if (json_) {
    base::print_json({{"experiment", experiment.name},
                      {"quick", quick_},
                      {"complete", complete},
                      {"core_hours", work_of(plans).core_hours},
                      {"outcome", outcome.string()},
                      {"comparisons", comparisons}});
  } else {
    base::print_text(fmt::format("\n{}\n", outcome.string()));
  }
  return complete ? base::kExitDone : tell_interrupted();
}

}  // namespace polyattn::cli
