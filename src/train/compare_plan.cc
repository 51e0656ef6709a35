#include "train/compare_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>
#include <span>
#include <utility>

#include "base/json_text.h"
#include "base/output.h"
#include "base/program.h"
#include "base/random.h"
#include "base/text_file.h"
#include "train/run/problems.h"

namespace polyattn::train {
namespace {

namespace fs = std::filesystem;

constexpr int kEvaluations = 3;           // of a run with a budget
constexpr double kMaxSteps = 1e9;         // what train.steps may be
constexpr double kValidationShare = 0.1;  // of a search, if nothing is said

fs::path plan_file(const ComparePlan& plan) {
  return plan.folder / "compare.json";
}

[[noreturn]] void refuse_plan(const ComparePlan& plan, const char* reason) {
  throw std::runtime_error(fmt::format(
      "{} is damaged ({}): remove it or choose another folder with --out",
      plan_file(plan).string(), reason));
}

// Folders that no two runs share.
class RunNames {
 public:
  explicit RunNames(fs::path folder) : folder_(std::move(folder)) {}

  fs::path folder_of(const run::Arm& arm, const run::GridSetting& setting,
                     std::int64_t seed) {
    std::string name = train::slug_of(arm.activation) + slug_of(arm.settings) +
                       slug_of(setting) + fmt::format("-seed{}", seed);
    while (!used_.insert(name).second) name += "-";
    return folder_ / name;
  }

 private:
  static std::string slug_of(const run::GridSetting& setting) {
    std::string slug;
    for (const auto& [key, value] : setting) {
      slug += "-" + train::slug_of(key.substr(key.find('.') + 1) + "-" + value);
    }
    return slug;
  }

  fs::path folder_;
  std::set<std::string> used_;
};

PlannedRun planned_run(const ComparePlan& plan, const run::Arm& arm,
                       const run::GridSetting& setting, int seed) {
  PlannedRun planned{.config = run::arm_config(plan.base, arm, setting),
                     .folder = {},
                     .variant = arm.variant(),
                     .label = arm.name()};
  planned.config.train.seed = seed;
  if (!setting.empty()) planned.label += ", " + run::setting_text(setting);
  return planned;
}

bool repeats(const PlannedRun& run, std::span<const PlannedRun> others) {
  return std::any_of(
      others.begin(), others.end(),
      [&](const PlannedRun& other) { return other.config == run.config; });
}

}  // namespace

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

fs::path default_folder(const ComparePlan& plan) {
  run::Config config = plan.base;
  config.model.activation.clear();
  config.train.seed = 0;
  std::string text = run::config_text(config) + plan.budget;
  for (const run::GridAxis& axis : plan.grid) {
    text += fmt::format(" {}={}", axis.key, fmt::join(axis.values, ","));
  }
  if (!plan.grid.empty()) text += fmt::format(" {}", plan.grid_seeds);
  const std::uint64_t hash = base::hash_bytes(
      {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  return fmt::format("runs/compare-{}-{:08x}", plan.base.task.name, hash >> 32);
}

run::TaskConfig search_task(const ComparePlan& plan) {
  run::TaskConfig task = plan.base.task;
  if (task.validation == 0) task.validation = kValidationShare;
  return task;
}

std::vector<PlannedRun> search_runs(const ComparePlan& plan) {
  if (plan.grid.empty()) return {};
  RunNames names(plan.folder / "grid");
  run::Problems problems;
  std::set<std::string> told;
  std::vector<PlannedRun> runs;
  const auto settings = run::settings_of(plan.grid);
  for (int seed = 1; seed <= plan.grid_seeds; ++seed) {
    for (const run::Arm& arm : plan.arms) {
      const std::size_t first = runs.size();
      for (std::size_t i = 0; i < settings.size(); ++i) {
        PlannedRun planned = planned_run(plan, arm, settings[i], seed);
        planned.config.task = search_task(plan);
        planned.setting = i;
        if (repeats(planned, {runs.begin() + first, runs.end()})) continue;
        for (const auto& bad : run::find_bad_values(planned.config)) {
          if (told.insert(bad.message).second) {
            problems.add("--grid", bad.message);
          }
        }
        planned.folder = names.folder_of(arm, settings[i], seed);
        runs.push_back(std::move(planned));
      }
    }
  }
  problems.check();
  return runs;
}

std::vector<PlannedRun> planned_runs(const ComparePlan& plan) {
  RunNames names(plan.folder);
  std::vector<PlannedRun> runs;
  const int seen = plan.grid.empty() ? 0 : plan.grid_seeds;
  for (int seed = seen + 1; seed <= seen + plan.seeds; ++seed) {
    for (const run::Arm& arm : plan.arms) {
      const auto chosen = plan.chosen.find(arm.name());
      PlannedRun planned = planned_run(
          plan, arm,
          chosen == plan.chosen.end() ? run::GridSetting() : chosen->second,
          seed);
      if (!plan.grid.empty()) planned.config.task.validation = 0;
      planned.folder = names.folder_of(arm, {}, seed);
      run::check_config(planned.config);
      runs.push_back(std::move(planned));
    }
  }
  return runs;
}

BudgetedSteps steps_within(double budget_seconds, int runs,
                           const Costs& costs) {
  const double each =
      budget_seconds / runs - kEvaluations * costs.evaluation_seconds;
  BudgetedSteps result;
  // Also of a cost of 0, and of a budget that no integer holds.
  result.steps = static_cast<std::int64_t>(
      std::clamp<double>(each / costs.step_seconds, kEvaluations, kMaxSteps));
  result.evaluate = (result.steps + kEvaluations - 1) / kEvaluations;
  return result;
}

std::optional<BudgetedSteps> earlier_steps(const ComparePlan& plan) {
  if (!fs::exists(plan_file(plan))) return std::nullopt;
  constexpr std::size_t kMaxBytes = 1 << 16;
  try {
    const base::Json json =
        base::parse_json(base::read_text_file(plan_file(plan), kMaxBytes));
    if (json.at("budget").get<std::string>() != plan.budget) {
      throw std::runtime_error(fmt::format(
          "{} holds a comparison with another budget ({}): choose another "
          "folder with --out",
          plan.folder.string(), json.at("budget").get<std::string>()));
    }
    BudgetedSteps steps{.steps = json.at("steps").get<std::int64_t>(),
                        .evaluate = json.at("evaluate").get<std::int64_t>()};
    if (steps.steps < 1 || steps.evaluate < 1) {
      throw run::RecordError("a number of steps is below 1");
    }
    return steps;
  } catch (const base::Json::exception& error) {
    refuse_plan(plan, error.what());
  } catch (const base::JsonError& error) {
    refuse_plan(plan, error.what());
  }
}

void remember_steps(const ComparePlan& plan, const BudgetedSteps& steps) {
  const base::Json json = {{"budget", plan.budget},
                           {"steps", steps.steps},
                           {"evaluate", steps.evaluate}};
  base::write_text_file(plan_file(plan), base::json_text(json));
}

}  // namespace polyattn::train
