#include "cli/theory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/output.h"
#include "base/program.h"
#include "base/progress.h"
#include "base/text_file.h"
#include "cli/program.h"
#include "cli/theory_options.h"
#include "polyattn/parallel.h"
#include "theory/norms_plot.h"
#include "theory/report_json.h"
#include "theory/report_text.h"
#include "theory/study.h"

namespace polyattn::cli {
namespace {

template <typename T>
CLI::Validator theory_range(T low, T high) {
  return CLI::Range(low, high).description("");
}

CLI::Validator samples_range() {
  return theory_range(theory::kLeastSamples, theory::kMostSamples);
}

CLI::Validator width_range() {
  return theory_range(std::int64_t{1}, theory::kMostWidth);
}

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

std::string calibration_text(const theory::CalibrateOptions& o,
                             const theory::Calibration& c) {
  const auto line = [](const theory::CalibratedFormula& f, const char* use) {
    return fmt::format("  {:<22} {:.4g} ({:.4g} to {:.4g})   {}\n", f.formula,
                       f.constant.value, f.constant.interval.low,
                       f.constant.interval.high, use);
  };
  return fmt::format(
      "Softmax of Gaussian queries and keys, N = {}, D = {}{}: root mean "
      "square of\n||A||_F {:.5g}, 99 % interval {:.5g} to {:.5g} ({} "
      "matrices). "
      "These have the same norm:\n\n"
      "  activation             constant (99 % interval)\n{}{}\n"
      "At this N: softmax itself hardly grows with N. Trained queries and keys "
      "are not\nGaussian: take it as a scale to begin with.\n",
      o.tokens, o.width, o.causal ? ", causal" : "", c.softmax_norm.value,
      c.softmax_norm.interval.low, c.softmax_norm.interval.high, c.samples,
      line(c.fixed, "grows as N"), line(c.row, "grows as sqrt(N)"));
}

}  // namespace

TheoryCommand::TheoryCommand(CLI::App& parent, const theory::RunReader* reader,
                             theory::Theory theory)
    : app_(parent.add_subcommand(
          "theory", "Hold the theory of norms against measurements")),
      reader_(reader),
      theory_(std::move(theory)) {
  app_->footer(
      "Draws matrices, measures the norms of attention and of its gradients, "
      "and says of\neach claim whether it holds. Without options it takes "
      "about a minute.\n\n"
      "Examples:\n"
      "  polyattn theory\n"
      "  polyattn theory --degrees 3 --lengths 64,128,197 --plot norms.svg\n"
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
  app_->add_option("--plot", plot_, "Also draw the norms against N")
      ->type_name("FILE.svg");
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

void TheoryCommand::add_calibrate() {
  calibrate_app_ = app_->add_subcommand(
      "calibrate", "The constant that gives x^p the norm of softmax");
  calibrate_app_->footer(
      "Examples:\n"
      "  polyattn theory calibrate --tokens 197 --width 64 --degree 3\n"
      "  polyattn theory calibrate --run runs/softmax --degree 3");
  theory::CalibrateOptions& o = calibrate_options_;
  CLI::App& sub = *calibrate_app_;
  sub.add_option("--tokens", o.tokens, "N")
      ->check(theory_range(theory::kLeastTokens, theory::kMostTokens));
  sub.add_option("--width", o.width, "D, width of queries and keys")
      ->check(width_range());
  sub.add_option("--degree", o.degree, "p")
      ->required()
      ->check(theory_range(1, kMaxDegree));
  sub.add_flag("--causal", o.causal, "Row i sees the keys up to i");
  sub.add_option("--samples", o.samples, "Matrices; default: by length")
      ->check(samples_range());
  sub.add_option("--seed", o.seed, "Of the random numbers")
      ->capture_default_str();
  sub.add_option("--threads", threads_, "Threads; default: all cores")
      ->check(theory_range(1, 1024));
  sub.add_flag("--json", json_, "Print JSON");
  sub.add_option("--run", run_options_.folder,
                 "Instead of --tokens and --width: the queries and keys of a "
                 "run with softmax")
      ->type_name("RUN");
  add_run_options(sub);
}

const theory::RunReader& TheoryCommand::reader() const {
  if (reader_ != nullptr) return *reader_;
  throw std::runtime_error(
      "this build has no torch, and cannot read the model of a run: install "
      "libtorch-dev and build again");
}

int TheoryCommand::run() {
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
  if (!plot_.empty()) base::check_writable(plot_);
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
  if (!plot_.empty()) {
    base::write_text_file(plot_,
                          plot_svg(norms_plot(options_, study.gaussian())));
  }
  const bool right = std::all_of(claims.begin(), claims.end(), theory::holds);
  return right ? base::kExitDone : base::kExitFailure;
}

int TheoryCommand::calibrate() {
  for (const CLI::Option* option : app_->get_options()) {
    if (option->count() == 0) continue;
    throw base::UsageError(fmt::format(
        "{} goes behind calibrate, if it knows it", option->get_name()));
  }
  if (!run_options_.folder.empty()) {
    return theory::show_calibrated_run(reader(), run_options_,
                                       calibrate_options_.degree, json_);
  }
  if (calibrate_options_.tokens == 0 || calibrate_options_.width == 0) {
    throw base::UsageError("calibrate needs --tokens and --width, or --run");
  }
  DefaultParallel parallel(threads_);
  const theory::Calibration result =
      theory::calibrate(calibrate_options_, parallel);
  if (json_) {
    base::print_json(theory::calibration_json(calibrate_options_, result));
  } else {
    base::print_text(calibration_text(calibrate_options_, result));
  }
  return base::kExitDone;
}

}  // namespace polyattn::cli
