#include "cli/compare.h"

#include <filesystem>

#include "base/output.h"
#include "base/program.h"
#include "base/stop_signals.h"
#include "cli/compare_report.h"

namespace polyattn::cli {

CompareCommand::CompareCommand(CLI::App& parent)
    : Command(parent.add_subcommand("compare", kAboutCompare)) {
  app_->footer(
      "Every activation starts from the same weights and sees the same "
      "batches. "
      "Interrupted,\nthe same command goes on where it stopped; finished runs "
      "are not repeated.\n\n"
      "An activation may carry settings of its own in braces, a variant: "
      "'x^3{model.start=plain}'.\n\n"
      "--grid tries every combination of the values for every activation, on a "
      "tenth of the\ntraining data that is held out (task.validation), takes "
      "the best setting of each, and\ncompares these on the test set, with "
      "other seeds and trained on all training data.\n\n"
      "Examples:\n"
      "  polyattn compare --budget 5m\n"
      "  polyattn compare --task cifar10 --activations 'softmax,x^3/sqrt(N)' "
      "--seeds 5\n"
      "  polyattn compare --activations "
      "'softmax,x^2/sqrt(N),x^2/sqrt(N){model.start=plain}'\n"
      "  polyattn compare --task cifar10 --model vit-tiny32 --seeds 2\n"
      "  polyattn compare --config configs/sotu.toml --set train.steps=600\n"
      "  polyattn compare --grid train.lr=1e-3,2e-3,4e-3 --grid "
      "model.norm=layer,rms --budget 2h");
  app_->add_option(
      "--task", options_.task,
      "fashion-mnist (default), cifar10, sotu, listops, imdb, convection, ..., "
      "or the file of a differential equation, FILE.toml");
  app_->add_option("--config", options_.config, "Instead of --task: a file")
      ->type_name("FILE");
  app_->add_option("--activations", activations_,
                   "Formulas, separated by commas, each with a variant in "
                   "braces if it is to have one; softmax, or else the first, "
                   "is what the others are held against")
      ->allow_extra_args(false)
      ->capture_default_str();
  app_->add_option("--seeds", seeds_, "How many: 1 to this number")
      ->check(CLI::Range(1, 1000).description(""))
      ->capture_default_str();
  app_->add_option("--budget", budget_,
                   "Time for all runs together, such as 5m: sets the number "
                   "of steps")
      ->type_name("TIME");
  app_->add_option("--grid", grid_,
                   "Values of a key to choose from, as train.lr=5e-4,1e-3; may "
                   "be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUES");
  app_->add_option("--grid-seeds", grid_seeds_,
                   "How many seeds each setting of the grid is tried with")
      ->check(CLI::Range(1, 1000).description(""))
      ->capture_default_str()
      ->needs("--grid");
  app_->add_option("--jobs", jobs_,
                   "Runs at a time; default: one for each core")
      ->check(CLI::Range(1, 1024).description(""));
  add_training_options(*app_, options_);
}

train::ComparePlan CompareCommand::make_plan() const {
  train::ComparePlan plan;
  plan.base = make_config(options_);
  plan.arms = run::parse_arms(activations_, plan.base);
  plan.seeds = seeds_;
  plan.grid = run::parse_grid(grid_, plan.base);
  plan.grid_seeds = grid_seeds_;
  train::share_cores(plan, jobs_, options_.threads);
  plan.budget = budget_;
  plan.folder = options_.out.empty() ? train::default_folder(plan)
                                     : std::filesystem::path(options_.out);
  train::check_plan(plan);
  return plan;
}

int CompareCommand::run() {
  train::ComparePlan plan = make_plan();
  if (!plan.grid.empty() && !options_.json) announce_search(plan);
  const base::StopSignals signals;
  const train::CompareOutcome outcome = train::run_comparison(
      plan, {.command = command_text(),
             .style = base::progress_style(options_.json),
             .searched = [this](const run::GridOutcome& search) {
               if (!options_.json) print_search(search);
             }});
  if (!outcome.infos.empty()) {
    const ComparisonReport report = write_comparison(plan, outcome);
    if (options_.json) {
      base::print_json(report.json);
    } else {
      print_comparison(report);
    }
  }
  return outcome.complete ? base::kExitDone : tell_interrupted();
}

}  // namespace polyattn::cli
