#include "cli/eval.h"

#include <fmt/format.h>

#include <stdexcept>

#include "base/output.h"
#include "base/program.h"
#include "base/progress.h"

namespace polyattn::cli {

EvalCommand::EvalCommand(CLI::App& parent)
    : Command(parent.add_subcommand("eval", kAboutEval)) {
  app_->footer(
      "Examples:\n"
      "  polyattn eval runs/cubic --best\n"
      "  polyattn eval runs/sotu --lengths 256,1024,4096,16384");
  app_->add_option("run", folder_, "Folder of a run")->required();
  app_->add_flag("--best", best_,
                 "The weights of the best evaluation, not the last ones");
  app_->add_option("--split", split_,
                   "test, or validation: what the run held out of its "
                   "training data (task.validation)")
      ->check(CLI::IsMember({"test", run::kValidation}).description(""))
      ->capture_default_str();
  app_->add_option("--data", data_, "Data from this path instead");
  app_->add_option("--lengths", lengths_,
                   "Of a language model: evaluate at each of these lengths, "
                   "and show how good it is by the number of tokens read; kept "
                   "as lengths.json of the run")
      ->type_name("N,N,...");
  app_->add_option("--threads", threads_, "Threads; default: all cores")
      ->check(CLI::Range(1, 1024).description(""));
  app_->add_flag("--json", json_, "Print JSON instead of text");
}

train::EvaluateOptions EvalCommand::options() const {
  const bool terminal =
      base::progress_style(json_) == base::ProgressStyle::kTerminal;
  return {.folder = folder_,
          .best = best_,
          .validation = split_ == run::kValidation,
          .threads = threads_ > 0 ? threads_ : base::hardware_threads(),
          .path = data_,
          .progress = [terminal, shown = -1](double share) mutable {
            const int percent = static_cast<int>(100 * share);
            if (!terminal || percent == shown) return;
            shown = percent;
            fmt::print(stderr, "\revaluating {:3} %{}", percent,
                       percent == 100 ? "\r\033[K" : "");
          }};
}

// Figures of other data are not those of the run.
int EvalCommand::run_at_lengths() const {
  std::vector<std::int64_t> lengths;
  try {
    lengths = run::parse_length_list(lengths_);
  } catch (const std::invalid_argument& error) {
    throw base::UsageError(std::string("--lengths: ") + error.what());
  }
  const auto found = train::evaluate_run_lengths(options(), lengths);
  if (json_) {
    base::Json json = {{"folder", folder_},
                       {"task", found.task},
                       {"activation", found.activation}};
    if (found.step >= 0) json["step"] = found.step;
    json.update(run::lengths_json(found.lengths));
    base::print_json(json);
  } else {
    base::print_text(
        fmt::format("{} on {}, {} data, trained at length {}: {} by length and "
                    "by tokens read\n\n",
                    found.activation, found.task, split_, found.lengths.context,
                    run::lengths_figure(found.lengths)) +
        run::lengths_table(found.lengths));
  }
  if (data_.empty()) run::write_lengths(folder_, found.lengths);
  return base::kExitDone;
}

int EvalCommand::run() {
  if (!lengths_.empty()) return run_at_lengths();
  const auto result = train::evaluate_run(options());
  const run::Evaluation& found = result.evaluation;
  if (json_) {
    base::Json json = {{"folder", folder_},
                       {"task", result.task},
                       {"activation", result.activation},
                       {"weights", best_ ? "best" : "last"},
                       {"split", split_},
                       {"examples", result.count}};
    if (result.step >= 0) json["step"] = result.step;
    json.update(run::evaluation_json(found));
    base::print_json(json);
    return base::kExitDone;
  }
  std::string text =
      fmt::format("{} on {}, {} {} examples: loss {}", result.activation,
                  result.task, result.count, split_,
                  // Of an equation it becomes small.
                  found.relative_l2 ? fmt::format("{:.3g}", found.loss)
                                    : fmt::format("{:.4f}", found.loss));
  if (found.bits_per_byte) {
    text += fmt::format(", {:.4f} bits per byte", *found.bits_per_byte);
  }
  if (found.accuracy) {
    text += fmt::format(", accuracy {:.2f} %", 100 * *found.accuracy);
  }
  if (found.relative_l2) {
    text += fmt::format(", relative L2 error {:.4f}", *found.relative_l2);
  }
  if (found.relative_l1) {
    text += fmt::format(", relative L1 error {:.4f}", *found.relative_l1);
  }
  base::print_text(text + "\n");
  return base::kExitDone;
}

}  // namespace polyattn::cli
