// `polyattn theory calibrate`: the constant that gives x^p the norm of softmax,
// and the size of the first scores that gives it to any activation.
#include <fmt/format.h>

#include <cmath>

#include "base/output.h"
#include "base/program.h"
#include "cli/theory.h"
#include "cli/theory_options.h"
#include "polyattn/parallel.h"
#include "theory/gaussian_scores.h"
#include "theory/report_json.h"
#include "theory/report_matched.h"

namespace polyattn::cli {
namespace {

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

std::vector<std::string> formulas_of_degree(int degree) {
  const std::string power = degree == 1 ? "x" : fmt::format("x^{}", degree);
  return {power + "/sqrt(N)", power, power + "/N"};
}

void check_match_options(const theory::MatchOptions& o) {
  if (!(o.score_std > 0 && o.score_std <= theory::kMostScoreStd)) {
    throw base::UsageError(
        fmt::format("--score-std {}: give a number above 0, at most {}",
                    o.score_std, theory::kMostScoreStd));
  }
  if (!(o.factor > 0 && std::isfinite(o.factor))) {
    throw base::UsageError(
        fmt::format("--factor {}: give a finite number above 0", o.factor));
  }
}

}  // namespace

void TheoryCommand::add_calibrate() {
  calibrate_app_ = app_->add_subcommand(
      "calibrate", "What gives an activation the norm of softmax");
  CLI::App& sub = *calibrate_app_;
  sub.footer(
      "Prints the size of the first scores at which an activation has the norm "
      "of softmax,\nand with --degree the constant c with which c x^p has "
      "it.\n\n"
      "Examples:\n"
      "  polyattn theory calibrate --tokens 197 --width 64 --degree 3\n"
      "  polyattn theory calibrate --tokens 64,256 --activations "
      "'x^3/sqrt(N),sigmoid'\n"
      "  polyattn theory calibrate --run runs/softmax --degree 3");
  theory::CalibrateOptions& o = calibrate_options_;
  sub.add_option("--tokens", tokens_, "N; several with --activations")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(theory_range(theory::kLeastTokens, theory::kMostTokens));
  sub.add_option("--activations", activations_,
                 "Formulas, with commas between them, instead of --degree")
      ->delimiter(',')
      ->allow_extra_args(false);
  sub.add_option("--degree", o.degree, "p")->check(theory_range(1, kMaxDegree));
  sub.add_option("--width", o.width,
                 "With --degree: D, width of queries and keys")
      ->check(width_range());
  sub.add_flag("--causal", o.causal, "Row i sees the keys up to i");
  sub.add_option("--score-std", match_options_.score_std,
                 "Standard deviation of the first scores as they are")
      ->capture_default_str();
  sub.add_option("--factor", match_options_.factor,
                 "Times the norm of softmax is the target")
      ->capture_default_str();
  sub.add_option("--samples", o.samples,
                 "With --degree: matrices; default: by length")
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

void TheoryCommand::check_calibrate() const {
  for (const CLI::Option* option : app_->get_options()) {
    if (option->count() == 0) continue;
    throw base::UsageError(fmt::format(
        "{} goes behind calibrate, if it knows it", option->get_name()));
  }
  check_match_options(match_options_);
  const bool degree = calibrate_options_.degree != 0;
  if (degree != activations_.empty()) {
    throw base::UsageError(degree
                               ? "--degree and --activations: give one of them"
                               : "--degree or --activations is required");
  }
  if (!run_options_.folder.empty()) {
    for (const char* name : {"--activations", "--score-std", "--factor"}) {
      if (calibrate_app_->count(name) == 0) continue;
      throw base::UsageError(fmt::format("{} does not go with --run", name));
    }
  } else if (degree && (tokens_.size() != 1 || calibrate_options_.width == 0)) {
    throw base::UsageError(
        "calibrate --degree needs one --tokens and --width, or --run");
  } else if (tokens_.empty()) {
    throw base::UsageError("calibrate --activations needs --tokens");
  }
}

int TheoryCommand::calibrate() {
  check_calibrate();
  theory::CalibrateOptions& o = calibrate_options_;
  if (!run_options_.folder.empty()) {
    return theory::show_calibrated_run(reader(), run_options_, o.degree, json_);
  }
  std::string text;
  auto json = nlohmann::ordered_json{{"causal", o.causal}};
  if (o.degree != 0) {
    activations_ = formulas_of_degree(o.degree);
    o.tokens = tokens_[0];
    DefaultParallel parallel(threads_);
    const theory::Calibration result = theory::calibrate(o, parallel);
    text = calibration_text(o, result) + "\n";
    json = theory::calibration_json(o, result);
  }
  match_options_.causal = o.causal;
  const std::vector<theory::MatchRow> rows =
      theory::match_rows(activations_, tokens_, match_options_);
  if (json_) {
    json["score_std"] = match_options_.score_std;
    json["factor"] = match_options_.factor;
    json["matched"] = theory::match_json(rows);
    base::print_json(json);
  } else {
    base::print_text(text + theory::match_text(rows, match_options_));
  }
  return base::kExitDone;
}

}  // namespace polyattn::cli
