#include "train/compare_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "base/json_text.h"
#include "base/output.h"
#include "base/program.h"
#include "base/random.h"
#include "base/text_file.h"
#include "polyattn/activation.h"

namespace polyattn::train {
namespace {

namespace fs = std::filesystem;

constexpr int kEvaluations = 3;    // of a run with a budget
constexpr double kMaxSteps = 1e9;  // what train.steps may be

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

std::vector<std::string> split(const std::vector<std::string>& texts) {
  std::vector<std::string> parts;
  for (const std::string& text : texts) {
    std::size_t first = 0;
    for (std::size_t comma = 0; comma != std::string::npos; first = comma + 1) {
      comma = text.find(',', first);
      parts.push_back(text.substr(first, comma - first));
    }
  }
  return parts;
}

fs::path plan_file(const ComparePlan& plan) {
  return plan.folder / "compare.json";
}

[[noreturn]] void refuse_plan(const ComparePlan& plan, const char* reason) {
  throw std::runtime_error(fmt::format(
      "{} is damaged ({}): remove it or choose another folder with --out",
      plan_file(plan).string(), reason));
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

std::vector<std::string> parse_activations(
    const std::vector<std::string>& text) {
  std::vector<std::string> list;
  for (const std::string& part : split(text)) {
    const std::string formula = trimmed(part);
    if (formula.empty()) {
      throw base::UsageError("--activations: there is an empty formula");
    }
    std::string canonical = Activation::parse(formula).to_string();
    if (std::find(list.begin(), list.end(), canonical) != list.end()) {
      throw base::UsageError(
          fmt::format("--activations: {} occurs twice", canonical));
    }
    list.push_back(std::move(canonical));
  }
  if (list.empty()) throw base::UsageError("--activations: there is none");
  return list;
}

fs::path default_folder(const ComparePlan& plan) {
  run::Config config = plan.base;
  config.model.activation.clear();
  config.train.seed = 0;
  const std::string text = run::config_text(config) + plan.budget;
  const std::uint64_t hash = base::hash_bytes(
      {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  return fmt::format("runs/compare-{}-{:08x}", plan.base.task.name, hash >> 32);
}

std::vector<PlannedRun> planned_runs(const ComparePlan& plan) {
  std::vector<PlannedRun> runs;
  std::set<std::string> used;
  for (int seed = 1; seed <= plan.seeds; ++seed) {
    for (const std::string& activation : plan.activations) {
      PlannedRun planned{.config = plan.base, .folder = {}};
      planned.config.model.activation = activation;
      planned.config.train.seed = seed;
      // What softmax cannot have, the polynomials beside it may.
      if (Activation::parse(activation).kind != ActivationKind::kPolynomial) {
        planned.config.model.learned_coefficients = "none";
      }
      std::string name = fmt::format("{}-seed{}", slug_of(activation), seed);
      while (!used.insert(name).second) name += "-";
      planned.folder = plan.folder / name;
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
