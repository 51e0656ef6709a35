#include "cli/generate.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/output.h"
#include "base/program.h"
#include "base/progress.h"
#include "base/stop_signals.h"

namespace polyattn::cli {
namespace {

// Beyond so many tokens the speed of the first and last tenth is worth a word.
constexpr std::size_t kLongText = 1000;

std::string speed_text(const train::GenerateResult& result) {
  const double mean = static_cast<double>(result.text.size()) / result.seconds;
  std::string text =
      fmt::format("{} bytes, {:.0f} a second", result.text.size(), mean);
  if (result.text.size() >= kLongText && result.speeds.size() > 1) {
    text += fmt::format(" ({:.0f} in the first tenth, {:.0f} in the last)",
                        result.speeds.front(), result.speeds.back());
  }
  return text;
}

// Beside text that is not seen on the terminal.
class WritingBar {
 public:
  WritingBar(bool json, std::int64_t bytes)
      : shown_(base::progress_style(json) == base::ProgressStyle::kTerminal &&
               (json || ::isatty(STDOUT_FILENO) == 0)),
        bytes_(bytes) {}
  ~WritingBar() {
    if (shown_) fmt::print(stderr, "\r\033[K");
  }
  WritingBar(const WritingBar&) = delete;
  WritingBar& operator=(const WritingBar&) = delete;

  void add(std::size_t bytes) {
    done_ += static_cast<std::int64_t>(bytes);
    const auto now = Clock::now();
    if (!shown_ || now - last_ < std::chrono::milliseconds(100)) return;
    last_ = now;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    const auto done = static_cast<double>(done_);
    const double all = static_cast<double>(bytes_);
    fmt::print(stderr, "\r{}\033[K",
               base::progress_line(done / all, seconds * (all - done) / done,
                                   fmt::format("{} bytes, {:.0f} a second",
                                               done_, done / seconds),
                                   base::terminal_columns()));
    std::fflush(stderr);
  }

 private:
  using Clock = std::chrono::steady_clock;

  bool shown_;
  std::int64_t bytes_;
  std::int64_t done_ = 0;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
};

}  // namespace

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
                   "0 takes the likeliest token always")
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
                   "Look back on so many tokens at most, beginning again with "
                   "the latter half beyond them; 0: on everything. Default: "
                   "the context of the training; with a state, everything");
  app_->add_flag("--best", o.best,
                 "The weights of the best evaluation, not the last ones");
  app_->add_option("--threads", o.threads, "Threads; default: all cores")
      ->check(CLI::Range(1, 1024).description(""));
  app_->add_flag("--json", json_, "Print JSON when it is complete");
}

train::GenerateResult GenerateCommand::write() const {
  WritingBar bar(json_, options_.bytes);
  try {
    return train::generate(options_, [&](std::string_view piece) {
      if (!json_) base::print_text(piece);
      bar.add(piece.size());
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
                                         {"tokens", result.tokens},
                                         {"speeds", result.speeds},
                                         {"window", result.window},
                                         {"training_context", result.context},
                                         {"state_bytes", result.state_bytes},
                                         {"state", result.sums}};
    base::print_json(json);
  } else {
    base::print_text("\n");
    fmt::print(stderr, "({}; {} of {:.1f} KB)\n", speed_text(result),
               result.sums ? "a state" : "keys and values",
               static_cast<double>(result.state_bytes) / 1024);
  }
  return base::StopSignals::stopped() ? base::StopSignals::exit_code()
                                      : base::kExitDone;
}

}  // namespace polyattn::cli
