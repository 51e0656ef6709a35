#include "report/comparisons.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "base/split.h"
#include "report/ranking.h"
#include "train/run/comparison.h"
#include "train/run/config.h"

namespace polyattn::report {
namespace {

using base::Json;

constexpr std::size_t kMaxKeysNamed = 8;

struct TaskRuns {
  std::string task;  // run::subject_of()
  std::vector<const RunFiles*> files;
  std::vector<run::RunInfo> infos;
};

std::vector<TaskRuns> by_task(const std::vector<const RunFiles*>& runs) {
  std::vector<TaskRuns> tasks;
  for (const RunFiles* run : runs) {
    const std::string name = run::subject_of(run->facts().info);
    auto found =
        std::find_if(tasks.begin(), tasks.end(),
                     [&](const TaskRuns& task) { return task.task == name; });
    if (found == tasks.end()) found = tasks.insert(found, {name, {}, {}});
    found->files.push_back(run);
    found->infos.push_back(run->facts().info);
  }
  return tasks;
}

// What a comparison varies, and what has no part in the result.
bool may_differ(const std::string& key) {
  constexpr std::array<std::string_view, 6> kPrefixes = {
      "model.activation", "train.seed", "train.threads",
      "train.workers",    "task.path",  "record."};
  return std::any_of(
      kPrefixes.begin(), kPrefixes.end(),
      [&](std::string_view prefix) { return key.starts_with(prefix); });
}

// The keys in which variants are meant to differ: "a=1, b=2" has a and b.
std::set<std::string> varied_keys(const std::vector<const RunFiles*>& runs) {
  std::set<std::string> keys;
  for (const RunFiles* run : runs) {
    const std::string variant = run->facts().info.variant.value_or("");
    for (const std::string& setting : base::split_at_commas(variant)) {
      keys.insert(base::trimmed(setting.substr(0, setting.find('='))));
    }
  }
  return keys;
}

// "The configs differ in train.lr, model.dim."; empty if they do not.
std::string config_caution(const std::vector<const RunFiles*>& runs) {
  const run::Config* first = nullptr;
  const std::set<std::string> varied = varied_keys(runs);
  std::set<std::string> keys;
  for (const RunFiles* run : runs) {
    if (!run->config()) continue;
    if (first == nullptr) first = &*run->config();
    for (const std::string& text :
         run::config_differences(*run->config(), *first)) {
      const std::string key = text.substr(0, text.find(' '));
      if (!may_differ(key) && !varied.contains(key)) keys.insert(key);
    }
  }
  if (keys.empty()) return "";
  const std::size_t more = keys.size() - std::min(keys.size(), kMaxKeysNamed);
  while (keys.size() > kMaxKeysNamed) keys.erase(std::prev(keys.end()));
  return fmt::format("The configs of the runs differ in {}{}.",
                     fmt::join(keys, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

Json comparison_member(const run::Comparison& comparison,
                       const TaskRuns& task) {
  Json json = run::comparison_json(comparison);
  const Ranking ranking = rank(comparison);
  for (std::size_t i = 0; i < ranking.rows.size(); ++i) {
    json["rows"][i]["best"] = ranking.rows[i].best;
    json["rows"][i]["like_best"] = ranking.rows[i].like_best;
  }
  for (const std::string& caution : ranking.cautions) {
    json["cautions"].push_back(caution);
  }
  const std::string configs = config_caution(task.files);
  if (!configs.empty()) json["cautions"].push_back(configs);
  return json;
}

std::string title_of(const std::vector<run::Comparison>& comparisons,
                     const std::vector<const RunFiles*>& runs) {
  if (runs.empty()) return "No runs yet";
  if (comparisons.size() > 1) {
    std::set<std::string> tasks;
    for (const RunFiles* run : runs) tasks.insert(run->facts().info.task);
    return fmt::format(
        "{} runs {} {} {}", runs.size(),
        tasks.size() < comparisons.size() ? "in" : "of", comparisons.size(),
        tasks.size() < comparisons.size() ? "comparisons" : "tasks");
  }
  const run::Comparison& only = comparisons.front();
  if (only.rows.size() > 1) return "Comparison on " + only.task;
  const std::string what =
      fmt::format("{} on {}", only.rows.front().name(), only.task);
  if (runs.size() > 1) return fmt::format("{}, {} runs", what, runs.size());
  return fmt::format("{}, seed {}", what, runs.front()->facts().info.seed);
}

}  // namespace

Comparisons compare_all(const std::vector<const RunFiles*>& runs) {
  Comparisons result;
  result.json = Json::array();
  std::vector<run::Comparison> comparisons;
  for (const TaskRuns& task : by_task(runs)) {
    comparisons.push_back(run::compare_runs(task.infos));
    result.json.push_back(comparison_member(comparisons.back(), task));
  }
  result.title = title_of(comparisons, runs);
  if (comparisons.size() == 1 && runs.size() > 1) {
    result.verdict = run::verdict(comparisons.front());
  }
  return result;
}

}  // namespace polyattn::report
