#include "cli/theory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/output.h"
#include "base/program.h"
#include "base/progress.h"
#include "cli/program.h"
#include "cli/theory_options.h"
#include "polyattn/parallel.h"
#include "theory/report_json.h"
#include "theory/report_text.h"
#include "theory/study.h"

namespace polyattn::cli {
namespace {

bool theory_colours() {
  return ::isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
}

void run_steps(theory::Study& study, bool json) {
  const std::vector<theory::Step> steps = study.steps();
  double total = 0;
  for (const theory::Step& step : steps) total += step.effort;
  base::Progress progress(base::progress_style(json),
                          static_cast<int>(steps.size()), total);
  for (const theory::Step& step : steps) {
    progress.step(step.label, step.effort);
    step.run();
  }
}

struct HeadingParts {
  const std::string& degrees;
  const std::string& lengths;
  const theory::StudyOptions& options;
};

std::string study_heading(const HeadingParts& parts) {
  return fmt::format(
      "polyattn {} theory: degrees {}, N = {}, width D = {}, seed {}\n\n"
      "A theorem can fail: the command then ends with exit code {}. An "
      "observation cannot.\nOf rows that were compared together, the table has "
      "the one nearest to failing.\n\n",
      base::version_number(), parts.degrees, parts.lengths, parts.options.width,
      parts.options.seed, base::kExitFailure);
}

}  // namespace

TheoryCommand::TheoryCommand(CLI::App& parent, const theory::RunReader* reader,
                             theory::Theory theory)
    : Command(parent.add_subcommand(
          "theory", "Hold the theory of norms against measurements")),
      reader_(reader),
      theory_(std::move(theory)) {
  app_->footer(
      "Draws matrices, measures the norms of attention and of its gradients, "
      "and says of\neach claim whether it holds. Without options it takes "
      "about a minute.\n\n"
      "Examples:\n"
      "  polyattn theory\n"
      "  polyattn theory --degrees 3 --lengths 64,128,197\n"
      "  polyattn theory --json >theory.json\n"
      "  polyattn report --theory theory.json    the norms against N, drawn\n"
      "  polyattn theory --run runs/cubic\n"
      "  polyattn theory calibrate --tokens 197 --width 64 --degree 3");
  theory::StudyOptions& o = options_;
  app_->add_option("--degrees", degrees_, "Of the polynomials, 1 to 8")
      ->capture_default_str();
  app_->add_option("--lengths", lengths_,
                   "N: a list, or A..B for the powers of two between them")
      ->capture_default_str();
  app_->add_option("--width", o.width, "D, width of queries and keys")
      ->check(width_range())
      ->capture_default_str();
  app_->add_option("--samples", o.samples,
                   "Matrices of each setting and length; default: by length")
      ->check(samples_range());
  app_->add_option("--seed", o.seed, "Of the random numbers")
      ->capture_default_str();
  app_->add_option("--threads", threads_, "Threads; default: all cores")
      ->check(theory_range(1, 1024));
  app_->add_option("--plot", plot_)->group("");  // of earlier versions
  app_->add_flag("--json", json_, "Print JSON, with every row");
  app_->add_option("--run", run_options_.folder,
                   "Instead: the norms of a trained run beside the theory")
      ->type_name("RUN");
  add_run_options(*app_);
  add_calibrate();
}

void TheoryCommand::add_run_options(CLI::App& app) {
  app.add_flag("--best", run_options_.best,
               "Of --run: the weights of the best evaluation");
  app.add_option("--data", run_options_.data,
                 "Of --run: its data from this path");
}

const theory::RunReader& TheoryCommand::reader() const {
  if (reader_ != nullptr) return *reader_;
  throw std::runtime_error(
      "this build has no torch, and cannot read the model of a run: install "
      "libtorch-dev and build again");
}

int TheoryCommand::run() {
  if (!plot_.empty()) {
    throw base::UsageError(
        "the report draws the norms, no longer --plot: polyattn theory --json "
        ">theory.json && polyattn report --theory theory.json");
  }
  if (threads_ == 0) threads_ = base::hardware_threads();
  checked_target();
  run_options_.threads = threads_;
  if (calibrate_app_->parsed()) return calibrate();
  return run_options_.folder.empty()
             ? study()
             : theory::show_trained(reader(), run_options_, json_);
}

int TheoryCommand::study() {
  options_.degrees = parse_degrees(degrees_);
  options_.lengths = parse_lengths(lengths_);
  DefaultParallel parallel(threads_);
  theory::Study study(options_, parallel, theory_);
  run_steps(study, json_);
  const std::vector<theory::Claim> claims = study.claims();
  if (json_) {
    base::print_json(theory_json(options_, claims));
  } else {
    base::print_text(study_heading({degrees_, lengths_, options_}) +
                     theory::claims_text(claims, theory_colours()) +
                     theory::conclusion(claims));
  }
  const bool right = std::all_of(claims.begin(), claims.end(), theory::holds);
  return right ? base::kExitDone : base::kExitFailure;
}

}  // namespace polyattn::cli
