#include "cli/compare_report.h"

#include <fmt/format.h>

#include "base/output.h"
#include "base/stop_signals.h"
#include "base/text_file.h"
#include "cli/report.h"

namespace polyattn::cli {
namespace {

// What the settings were chosen by.
std::string grid_text(const std::optional<run::GridOutcome>& found) {
  if (!found) return "";
  return fmt::format(
      "Settings were chosen on {:g} % of the training data, held out, with {} "
      "{} each; the figures above are of other seeds, trained on all of it.\n\n"
      "```\n{}```\n\n",
      100 * found->plan.validation, found->plan.seeds,
      found->plan.seeds == 1 ? "seed" : "seeds", run::grid_table(*found));
}

std::string report_text(const run::Comparison& comparison,
                        const train::CompareOutcome& outcome,
                        const train::ComparePlan& plan) {
  const run::RunInfo& first = outcome.infos.front();
  return fmt::format(
      "# Comparison on {}\n\n{}\n{}"
      "- command: `{}`\n- {} steps a run, {} parameters, {} threads\n"
      "- polyattn {} ({}), {}, {}, {}\n- runs: {}\n",
      comparison.task, run::comparison_markdown(comparison),
      grid_text(outcome.search), first.command, first.steps, first.parameters,
      first.threads, first.version, first.instruction_set,
      first.blas.value_or("BLAS unknown"), first.machine, first.started,
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

void announce_search(const train::ComparePlan& plan) {
  fmt::print(
      stderr,
      "{} settings: {} runs to choose on validation data, then {} on the "
      "test set\n",
      run::settings_of(plan.grid).size(), train::search_runs(plan).size(),
      train::planned_runs(plan).size());
}

void print_search(const run::GridOutcome& search) {
  base::print_text(fmt::format("\n{}\n", run::grid_table(search)));
}

int tell_interrupted() {
  fmt::print(stderr, "interrupted: the same command goes on\n");
  return base::StopSignals::exit_code();
}

ComparisonReport write_comparison(const train::ComparePlan& plan,
                                  const train::CompareOutcome& outcome) {
  ComparisonReport report{
      run::compare_runs(outcome.infos), {}, plan.folder / "report.md"};
  for (run::ComparisonRow& row : report.comparison.rows) {
    const auto chosen = plan.chosen.find(row.name());
    if (chosen == plan.chosen.end()) continue;
    row.setting = run::setting_text(chosen->second);
  }
  base::write_text_file(report.page,
                        report_text(report.comparison, outcome, plan));
  report.json = run::comparison_json(report.comparison);
  if (outcome.search) report.json["grid"] = run::grid_json(*outcome.search);
  report.json["folder"] = plan.folder.string();
  base::write_text_file(plan.folder / "comparison.json",
                        base::json_text(report.json));
  const auto page =
      write_extra_report(begun_folders(plan), plan.folder / "report.html");
  report.json["report"] = page ? base::Json(page->string()) : base::Json();
  if (page) report.page = *page;
  return report;
}

void print_comparison(const ComparisonReport& report) {
  base::print_text(
      fmt::format("\n{}\n{}\n\n{}\n", run::comparison_table(report.comparison),
                  run::verdict(report.comparison), report.page.string()));
}

}  // namespace polyattn::cli
