#include "cli/training_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>

#include "base/duration.h"
#include "base/program.h"
#include "train/run/models.h"
#include "train/run/tasks.h"

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
  app.add_option("--model", options.model,
                 "Of images: " + run::model_names(run::kImages) +
                     "; of sequences: " + run::model_names(run::kSequences) +
                     "; of equations: " + run::model_names(run::kPhysics))
      ->type_name("NAME");
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
    throw base::UsageError("a config file and --task: give one of them");
  }
  std::vector<run::Setting> settings;
  if (options.task.ends_with(".toml")) {
    settings.push_back({"task.name", "problem"});
    settings.push_back({"task.path", options.task});
  } else if (!options.task.empty()) {
    settings.push_back({"task.name", options.task});
  }
  if (!options.model.empty()) settings.push_back({"model.name", options.model});
  for (const std::string& text : options.settings) {
    settings.push_back(run::parse_setting(text));
  }
  if (options.tensorboard) settings.push_back({"record.tensorboard", "true"});
  run::Config config =
      options.config.empty() ? run::parse_config("", "--set", settings)
      : options.of_run       ? run::read_run_config(options.config, settings)
                             : run::read_config(options.config, settings);
  if (options.threads > 0) config.train.threads = options.threads;
  if (config.train.threads == 0)
    config.train.threads = base::hardware_threads();
  return config;
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
