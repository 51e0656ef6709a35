#include "cli/train.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/output.h"
#include "base/program.h"
#include "base/stop_signals.h"
#include "train/run/records.h"
#include "train/text_tokens.h"
#include "train/train_bar.h"
#include "train/trainer.h"

namespace polyattn::cli {
namespace {

namespace fs = std::filesystem;

std::string default_folder(const run::Config& config) {
  const bool own =
      config.model.name == run::default_config(config.task.name).model.name;
  return fmt::format("runs/{}-{}{}-seed{}", config.task.name,
                     own ? "" : config.model.name + "-",
                     train::slug_of(config.model.activation),
                     config.train.seed);
}

base::Json result_json(const fs::path& folder, const run::RunInfo& info) {
  base::Json json = {{"folder", folder.string()},
                     {"state", run::name_of(info.state)},
                     {"step", info.step},
                     {"steps", info.steps},
                     {"train_seconds", info.train_seconds},
                     {"peak_mb", info.peak_mb}};
  if (info.result) json.update(run::evaluation_json(*info.result));
  if (info.divergence) {
    json["diverged"] = {{"step", info.divergence->step},
                        {"what", info.divergence->what}};
  }
  return json;
}

}  // namespace

TrainCommand::TrainCommand(CLI::App& parent)
    : Command(parent.add_subcommand("train", kAboutTrain)) {
  app_->footer(
      "Ready configs are in configs/. An interrupted run is saved and goes on "
      "with --resume.\n\n"
      "Examples:\n"
      "  polyattn train configs/fashion-mnist.toml\n"
      "  polyattn train configs/sotu.toml --set 'model.activation=x^3/sqrt(N)' "
      "--out runs/cubic\n"
      "  polyattn train runs/cubic --resume\n"
      "  polyattn train --task convection --set "
      "'model.activation=x^3/sqrt(N)'\n"
      "  polyattn train --task cifar10 --model vit-tiny32 --keys");
  app_->add_option("config", options_.config,
                   "Config file, or the folder of a run (with --resume)");
  app_->add_option("--task", options_.task,
                   "Instead of a file: the defaults of a task, or the file of "
                   "a differential equation, FILE.toml");
  add_training_options(*app_, options_);
  app_->add_flag("--resume", resume_, "Go on from the last checkpoint");
  app_->add_flag("--keys", keys_,
                 "Print every key with its default for --task and --model, "
                 "and stop");
}

int TrainCommand::run() {
  if (keys_) {
    const std::string task = options_.task.empty() ? "fashion-mnist"
                             : options_.task.ends_with(".toml") ? "problem"
                                                                : options_.task;
    base::print_text(run::describe_config(task, options_.model));
    return base::kExitDone;
  }
  if (options_.config.empty() && options_.task.empty()) {
    throw base::UsageError(
        "train needs a config file or --task; ready files are in configs/");
  }
  if (fs::is_directory(options_.config)) {
    if (!resume_) {
      throw base::UsageError(options_.config +
                             " is a folder: go on with its run by "
                             "--resume, or give a config file");
    }
    if (options_.out.empty()) options_.out = options_.config;
    options_.of_run = true;
  }
  const run::Config config = make_config(options_);
  const fs::path folder =
      options_.out.empty() ? default_folder(config) : options_.out;
  train::TrainBar bar(base::progress_style(options_.json), 1);
  const base::StopSignals signals;
  bar.begin_run(0, config.model.activation, config.train.seed);
  const run::RunInfo info = train::train(
      {.config = config,
       .data = train::load_task_data(
           config.task,
           resume_ ? train::tokenizer_of(folder, config.task) : std::string()),
       .folder = folder,
       .resume = resume_,
       .command = command_text(),
       .version = base::version_number(),
       .stop = [] { return base::StopSignals::stopped(); },
       .progress = [&](const train::Progress& p) { bar.update(0, p); },
       .warn = [&](const std::string& text) { bar.note(text); }});
  if (options_.json) {
    base::print_json(result_json(folder, info));
  } else {
    base::print_text(fmt::format("{}: {}\n{}\n", config.model.activation,
                                 run::outcome_text(info), folder.string()));
  }
  switch (info.state) {
    case run::RunState::kFinished:
      return base::kExitDone;
    case run::RunState::kInterrupted:
      return base::StopSignals::exit_code();
    default:
      return base::kExitFailure;
  }
}

}  // namespace polyattn::cli
