#include "cli/training_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>

#include "cli/cli.h"
#include "cli/duration.h"

namespace polyattn::cli {
namespace {

bool plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("-_./=,:+%@").find(c) != std::string_view::npos;
}

// As a shell must be told.
std::string quoted(const std::string& word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) {
    return word;
  }
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

}  // namespace

void add_training_options(CLI::App& app, TrainingOptions& options) {
  app.add_option("--set", options.settings,
                 "Change a key of the config: --set train.lr=1e-3; may be "
                 "repeated")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  app.add_option("--out", options.out, "Folder for what comes out")
      ->type_name("DIR");
  app.add_option("--threads", options.threads, "Threads; default: all cores")
      ->check(CLI::Range(1, 1024).description(""));
  app.add_flag("--tensorboard", options.tensorboard,
               "Also write TensorBoard event files");
  app.add_flag("--json", options.json, "Print JSON instead of text");
}

run::Config make_config(const TrainingOptions& options) {
  if (!options.config.empty() && !options.task.empty()) {
    throw UsageError("a config file and --task: give one of them");
  }
  std::vector<run::Setting> settings;
  if (!options.task.empty()) settings.push_back({"task.name", options.task});
  for (const std::string& text : options.settings) {
    settings.push_back(run::parse_setting(text));
  }
  if (options.tensorboard) settings.push_back({"record.tensorboard", "true"});
  run::Config config = options.config.empty()
                           ? run::parse_config("", "--set", settings)
                           : run::read_config(options.config, settings);
  if (options.threads > 0) config.train.threads = options.threads;
  if (config.train.threads == 0) config.train.threads = hardware_threads();
  return config;
}

std::string outcome_text(const run::RunInfo& info) {
  if (info.divergence) {
    return fmt::format("diverged at step {}: {}", info.divergence->step,
                       info.divergence->what);
  }
  std::string text;
  if (info.bits_per_byte) {
    text = fmt::format("{:.3f} bits per byte", *info.bits_per_byte);
  } else if (info.accuracy && info.loss) {
    text = fmt::format("accuracy {:.2f} %, loss {:.3f}", 100 * *info.accuracy,
                       *info.loss);
  }
  if (info.state == run::RunState::kInterrupted) {
    text = fmt::format("interrupted at step {} of {}", info.step, info.steps);
  }
  return fmt::format("{}, {} of training", text,
                     duration_text(info.train_seconds));
}

std::string slug_of(const std::string& activation) {
  std::string slug;
  for (const char c : activation) {
    if (c == '/') {
      slug += "-over-";
    } else if (c == '+') {
      slug += "-plus-";
    } else if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' ||
               c == '-') {
      slug += c;
    }
  }
  return slug;
}

std::string command_text() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  std::string text = "polyattn";
  std::size_t at = all.find('\0');
  while (at != std::string::npos && at + 1 < all.size()) {
    const std::size_t end = std::min(all.find('\0', at + 1), all.size());
    text += " " + quoted(all.substr(at + 1, end - at - 1));
    at = end;
  }
  return text;
}

}  // namespace polyattn::cli
