#include "train/run/suggest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "train/run/fields.h"
#include "train/run/models.h"

namespace polyattn::run {
namespace {

// Longer names are no slips of the finger, and would take long to compare.
constexpr std::size_t kLongestName = 40;

std::vector<std::string_view> keys_of(std::string_view section) {
  std::vector<std::string_view> keys;
  for (const Field& field : fields()) {
    if (field.section == section) keys.push_back(field.key);
  }
  return keys;
}

constexpr std::size_t kFar = std::numeric_limits<std::size_t>::max();

// The edit distance; kFar if it is more than a slip.
std::size_t slip_distance(std::string_view typed, std::string_view known) {
  if (typed.size() > kLongestName) return kFar;
  const std::size_t longer = std::max(typed.size(), known.size());
  const std::size_t distance = edit_distance(typed, known);
  const bool slip =
      distance <= std::max<std::size_t>(1, longer / 3) && distance < longer;
  return slip ? distance : kFar;
}

std::string did_you_mean(std::string_view what) {
  return fmt::format("did you mean {}?", what);
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Rows i - 2, i - 1 and i of the usual table.
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1),
      row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, last);
    std::swap(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1,
                         last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::optional<std::string_view> nearest(
    std::string_view name, std::span<const std::string_view> known) {
  std::optional<std::string_view> best;
  std::size_t best_distance = kFar;
  for (const std::string_view candidate : known) {
    const std::size_t distance = slip_distance(name, candidate);
    if (distance >= best_distance) continue;
    best = candidate;
    best_distance = distance;
  }
  return best;
}

std::string advice_on_key(std::string_view section, std::string_view key) {
  const Field* best = nullptr;
  std::size_t best_distance = kFar;
  for (const Field& field : fields()) {
    const std::size_t distance = slip_distance(key, field.key);
    const bool own = field.section == section;
    if (distance < best_distance ||
        (own && distance < kFar && distance == best_distance &&
         best->section != section)) {
      best = &field;
      best_distance = distance;
    }
  }
  if (best != nullptr) return did_you_mean(best->name());
  const std::vector<std::string_view> keys = keys_of(section);
  if (keys.empty()) return advice_on_section(section);
  return fmt::format("[{}] has {}", section, fmt::join(keys, ", "));
}

std::string advice_on_section(std::string_view section) {
  if (const auto near = nearest(section, section_names())) {
    return did_you_mean(fmt::format("[{}]", *near));
  }
  return fmt::format("sections are {}", fmt::join(section_names(), ", "));
}

std::string advice_on_task(std::string_view task) {
  std::vector<std::string_view> names;
  names.reserve(kTasks.size());
  for (const TaskEntry& entry : kTasks) names.push_back(entry.name);
  if (const auto near = nearest(task, names)) return did_you_mean(*near);
  return fmt::format("tasks are {}", fmt::join(names, ", "));
}

std::string advice_on_model(std::string_view model, const TaskEntry& task) {
  std::vector<std::string_view> names;
  for (const ModelEntry& entry : models()) {
    if ((entry.tasks & task.kind) != 0) names.push_back(entry.name);
  }
  if (const auto near = nearest(model, names)) return did_you_mean(*near);
  return fmt::format("models of {} are {}", task.name, fmt::join(names, ", "));
}

}  // namespace polyattn::run
