#include "bench/time_to_quality.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "base/openblas.h"
#include "base/process.h"
#include "base/program.h"
#include "bench/quality_pytorch.h"
#include "bench/quality_steps.h"
#include "train/compare_plan.h"
#include "train/run/tasks.h"

namespace polyattn::bench {
namespace {

namespace fs = std::filesystem;

// What a task is measured at, unless --set says otherwise, and the goal of the
// polynomials against PyTorch.
struct Subject {
  const char* task;
  std::vector<const char*> settings;
  std::optional<double> goal;
};

const Subject kSubjects[] = {
    {"cifar10-pixels", {"train.steps=2000", "record.evaluate=100"}, 3.0},
    {"imdb",
     {"task.context=4096", "train.steps=2000", "record.evaluate=100"},
     3.0},
    {"listops",
     {"task.min_length=500", "task.max_length=2000", "train.steps=3000",
      "record.evaluate=150"},
     2.0},
};

constexpr const char* kCommonSettings[] = {"task.validation=0.1",
                                           "record.norms=0"};

const Subject* find_subject(const std::string& task) {
  for (const Subject& subject : kSubjects) {
    if (task == subject.task) return &subject;
  }
  return nullptr;
}

// It holds for the task as it is measured here.
std::optional<double> goal_of(const Options& options) {
  const Subject* subject = find_subject(options.quality.task);
  for (const std::string& text : options.quality.settings) {
    if (run::parse_setting(text).key.starts_with("task.")) return {};
  }
  return subject == nullptr ? std::nullopt : subject->goal;
}

// Ours first, but for keys that --set has.
std::vector<std::string> settings_of(const Options& options) {
  std::vector<const char*> own(std::begin(kCommonSettings),
                               std::end(kCommonSettings));
  if (const Subject* subject = find_subject(options.quality.task)) {
    own.insert(own.end(), subject->settings.begin(), subject->settings.end());
  }
  const auto& theirs = options.quality.settings;
  std::vector<std::string> settings;
  for (const char* text : own) {
    const std::string key = run::parse_setting(text).key;
    const bool set =
        std::any_of(theirs.begin(), theirs.end(), [&](const auto& other) {
          return run::parse_setting(other).key == key;
        });
    if (!set) settings.emplace_back(text);
  }
  settings.insert(settings.end(), theirs.begin(), theirs.end());
  return settings;
}

train::ComparePlan make_plan(const Options& options) {
  std::vector<run::Setting> settings{{"task.name", options.quality.task}};
  for (const std::string& text : settings_of(options)) {
    settings.push_back(run::parse_setting(text));
  }
  train::ComparePlan plan;
  plan.base = run::parse_config("", "--set", settings);
  const run::TaskEntry* task = run::find_task(plan.base.task.name);
  if ((task->kind & run::kSequences) == 0) {
    throw base::UsageError(fmt::format(
        "time-to-quality: {} is no task of sequences", options.quality.task));
  }
  if ((task->kind & run::kPairs) != 0) {
    throw base::UsageError(fmt::format(
        "time-to-quality: {} has pairs, which the model in PyTorch does not "
        "read",
        options.quality.task));
  }
  plan.base.train.threads = 1;
  plan.arms = run::parse_arms({options.quality.arms}, plan.base);
  plan.seeds = options.quality.seeds;
  plan.folder = fs::path(options.quality.out) / "runs";
  if (plan.arms.front().name() != "softmax") {
    throw base::UsageError(
        fmt::format("--activations {}: softmax comes first, for it is what the "
                    "others are held against",
                    options.quality.arms));
  }
  if (plan.base.task.validation <= 0) {
    throw base::UsageError(
        "time-to-quality: task.validation is 0, but quality is measured on "
        "validation data, not on the test set");
  }
  if (plan.base.train.steps <= 0) {
    throw base::UsageError(
        "time-to-quality: train.steps is 0: say how many there are");
  }
  train::planned_runs(plan);  // checks all of them
  return plan;
}

std::vector<std::string> compare_arguments(const Options& options) {
  std::vector<std::string> arguments{
      "polyattn",      "compare",
      "--task",        options.quality.task,
      "--activations", options.quality.arms,
      "--seeds",       std::to_string(options.quality.seeds),
      "--threads",     "1"};
  for (const std::string& text : settings_of(options)) {
    arguments.insert(arguments.end(), {"--set", text});
  }
  const fs::path folder = fs::path(options.quality.out) / "runs";
  arguments.insert(arguments.end(), {"--out", folder.string()});
  return arguments;
}

// What it prints goes to standard error, so that --json stays clean.
void train_all(const Options& options) {
  const fs::path self = fs::read_symlink("/proc/self/exe");
  const base::CommandEnd end =
      base::run_command({.arguments = compare_arguments(options),
                         .program = self.parent_path() / "polyattn-train"},
                        [](std::span<const std::byte> text) {
                          std::fwrite(text.data(), 1, text.size(), stderr);
                          return true;
                        });
  if (end.ended_well()) return;
  throw std::runtime_error(
      fmt::format("[time-to-quality] polyattn compare: {}; the same command "
                  "goes on where it stopped",
                  end.reason));
}

std::vector<QualityCurves> read_curves(const train::ComparePlan& plan) {
  std::vector<QualityCurves> curves;
  for (const run::Arm& arm : plan.arms) curves.push_back({arm.name(), {}});
  for (const train::PlannedRun& run : train::planned_runs(plan)) {
    const auto name = run::arm_name(run.config.model.activation, run.variant);
    for (QualityCurves& arm : curves) {
      if (arm.model == name) arm.seeds.push_back(read_curve(run.folder));
    }
  }
  return curves;
}

std::string how_to_merge(const fs::path& steps) {
  return fmt::format(
      "{0} has the steps for PyTorch. Where it is installed:\n"
      "  python3 examples/pytorch_steps.py {0} --json pytorch.json\n"
      "and then this command again with --pytorch pytorch.json\n",
      steps.string());
}

}  // namespace

QualityOutcome time_to_quality(const Options& options) {
  const train::ComparePlan plan = make_plan(options);
  std::vector<PyTorchSteps> theirs;
  for (const std::string& file : options.quality.pytorch) {
    theirs.push_back(read_pytorch_steps(file));
  }
  const StepPlan step_plan{
      .batches = options.quality.batches,
      .rounds = options.repeats.value_or(StepPlan().rounds),
      .threads = options.threads.empty() ? 1 : options.threads.front()};
  const QualitySteps steps(run::arm_config(plan.base, plan.arms.front()),
                           train::load_task_data(plan.base.task), step_plan);
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    check_steps(options.quality.pytorch[i], theirs[i], steps.id());
  }
  const fs::path file = fs::path(options.quality.out) / "steps.safetensors";
  fs::create_directories(options.quality.out);
  steps.write(file);
  if (options.quality.prepare) return {how_to_merge(file), {}};
  train_all(options);
  const std::vector<QualityCurves> curves = read_curves(plan);
  QualitySteps::Timed timed = steps.time(plan.arms);
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    check_losses(options.quality.pytorch[i], theirs[i], timed.losses);
    timed.times.insert(timed.times.begin() + static_cast<std::ptrdiff_t>(i),
                       theirs[i].time);
  }
  const Quality quality =
      make_quality(options.quality.task, curves, timed.times);
  return {quality_text(quality) + (theirs.empty() ? how_to_merge(file) : ""),
          quality_report(quality, goal_of(options))};
}

}  // namespace polyattn::bench
