#include "cli/generate.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/output.h"
#include "base/program.h"
#include "base/stop_signals.h"

namespace polyattn::cli {

GenerateCommand::GenerateCommand(CLI::App& parent)
    : Command(parent.add_subcommand("generate", kAboutGenerate)) {
  app_->footer(
      "Example:\n"
      "  polyattn generate runs/sotu --prompt 'My fellow Americans,' --bytes "
      "600");
  train::GenerateOptions& o = options_;
  o.threads = 0;
  app_->add_option("run", o.folder, "Folder of a run on a text")->required();
  app_->add_option("--prompt", o.prompt, "What the text begins with");
  app_->add_option("--bytes", o.bytes, "How much to write, 1000000000 at most")
      ->capture_default_str();
  app_->add_option("--temperature", o.temperature,
                   "0 takes the likeliest byte always")
      ->capture_default_str();
  app_->add_option("--top-k", o.top_k, "Draw from so many of the likeliest");
  app_->add_option("--top-p", o.top_p,
                   "Draw from the likeliest that have this share together");
  app_->add_option("--seed", o.seed, "Of the random numbers")
      ->check(CLI::Validator(CLI::NonNegativeNumber).description(""))
      ->capture_default_str();
  app_->add_option("--stop", o.stop, "End behind this text");
  app_->add_option("--mode", mode_,
                   "What stands for the text that was read: cache (keys and "
                   "values), state (sums over a polynomial's features, of "
                   "constant size), or auto (whichever is smaller)")
      ->check(CLI::IsMember({"auto", "cache", "state"}))
      ->capture_default_str();
  app_->add_option("--window", o.window,
                   "Look back on so many bytes at most, beginning again with "
                   "the latter half beyond them; 0: on everything. Default: "
                   "the context of the training; with a state, everything");
  app_->add_flag("--best", o.best,
                 "The weights of the best evaluation, not the last ones");
  app_->add_option("--threads", o.threads, "Threads; default: all cores")
      ->check(CLI::Range(1, 1024).description(""));
  app_->add_flag("--json", json_, "Print JSON when it is complete");
}

train::GenerateResult GenerateCommand::write() const {
  try {
    return train::generate(options_, [&](std::string_view piece) {
      if (!json_) base::print_text(piece);
      return !base::StopSignals::stopped();
    });
  } catch (const std::invalid_argument& error) {
    throw base::UsageError(error.what());
  }
}

int GenerateCommand::run() {
  if (options_.threads == 0) options_.threads = base::hardware_threads();
  if (mode_ == "cache") options_.mode = DecodeMode::kCache;
  if (mode_ == "state") options_.mode = DecodeMode::kSums;
  const base::StopSignals signals;
  if (!json_) base::print_text(options_.prompt);
  const train::GenerateResult result = write();
  const double speed = static_cast<double>(result.text.size()) / result.seconds;
  if (json_) {
    const nlohmann::ordered_json json = {{"prompt", options_.prompt},
                                         {"text", result.text},
                                         {"seconds", result.seconds},
                                         {"bytes_per_second", speed},
                                         {"window", result.window},
                                         {"training_context", result.context},
                                         {"state_bytes", result.state_bytes},
                                         {"state", result.sums}};
    base::print_json(json);
  } else {
    base::print_text("\n");
    fmt::print(stderr, "({} bytes, {:.0f} a second; {} of {:.1f} KB)\n",
               result.text.size(), speed,
               result.sums ? "a state" : "keys and values",
               static_cast<double>(result.state_bytes) / 1024);
  }
  return base::StopSignals::stopped() ? base::StopSignals::exit_code()
                                      : base::kExitDone;
}

}  // namespace polyattn::cli
