#include "train/run/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>

#include "base/message.h"
#include "polyattn/activation.h"
#include "train/run/config.h"

namespace polyattn::run {
namespace {

constexpr double kConfidence = 0.95;

// Two spellings of a formula are one activation. Text that is no formula comes
// from a file that somebody else wrote.
struct Label {
  std::string canonical;
  std::string shown;
  bool softmax = false;
};

Label label_of(const std::string& formula) {
  try {
    const Activation activation = Activation::parse(formula);
    return {activation.to_string(), formula,
            activation.kind == ActivationKind::kSoftmax};
  } catch (const FormulaError&) {
    const std::string quoted = base::in_quotes(formula);
    return {quoted, quoted};
  }
}

Figure figure_of(const std::vector<RunInfo>& runs) {
  const auto any = [&](auto has) {
    return std::any_of(runs.begin(), runs.end(), has);
  };
  if (any([](const RunInfo& run) { return run.accuracy.has_value(); })) {
    return Figure::kAccuracy;
  }
  if (any([](const RunInfo& run) { return run.bits_per_byte.has_value(); })) {
    return Figure::kBitsPerByte;
  }
  return Figure::kLoss;
}

std::optional<double> figure_value(const RunInfo& run, Figure figure) {
  switch (figure) {
    case Figure::kAccuracy:
      return run.accuracy;
    case Figure::kBitsPerByte:
      return run.bits_per_byte;
    default:
      return run.loss;
  }
}

enum class Outcome { kFinished, kDiverged, kOther };

Outcome outcome_of(const RunInfo& run, Figure figure) {
  if (run.state == RunState::kDiverged) return Outcome::kDiverged;
  const auto value = figure_value(run, figure);
  if (run.state != RunState::kFinished || !value) return Outcome::kOther;
  // The accuracy of a model that computes NaN is finite, its loss is not.
  const bool finite =
      std::isfinite(*value) && std::isfinite(run.loss.value_or(0));
  return finite ? Outcome::kFinished : Outcome::kDiverged;
}

// NaN is worse than anything.
double larger_norm(double a, double b) {
  return std::isnan(a) || a > b ? a : b;
}

// The runs of one activation.
struct Group {
  Label label;
  std::vector<const RunInfo*> runs;
  std::vector<const RunInfo*> finished;
};

std::map<std::int64_t, double> figures_by_seed(const Group& group,
                                               Figure figure) {
  std::map<std::int64_t, std::vector<double>> values;
  for (const RunInfo* run : group.finished) {
    values[run->seed].push_back(*figure_value(*run, figure));
  }
  std::map<std::int64_t, double> means;
  for (const auto& [seed, all] : values)
    means[seed] = base::sample_of(all).mean;
  return means;
}

// A row's figures of the seeds that both rows have.
std::vector<double> common_figures(const ComparisonRow& row,
                                   const ComparisonRow& other) {
  std::vector<double> figures;
  for (const auto& [seed, value] : row.by_seed) {
    if (other.by_seed.contains(seed)) figures.push_back(value);
  }
  return figures;
}

void compare_with(const ComparisonRow& baseline, ComparisonRow& row) {
  const PairedDifference found = paired_difference(row, baseline);
  row.pairs = found.pairs;
  row.difference = found.difference;
  row.half_width = found.half_width;
  row.paired_mean = base::sample_of(common_figures(row, baseline)).mean;
  row.baseline_mean = base::sample_of(common_figures(baseline, row)).mean;
}

ComparisonRow row_of(const Group& group, Figure figure) {
  ComparisonRow row;
  row.activation = group.label.shown;
  for (const RunInfo* run : group.runs) {
    const Outcome outcome = outcome_of(*run, figure);
    row.finished += outcome == Outcome::kFinished ? 1 : 0;
    row.diverged += outcome == Outcome::kDiverged ? 1 : 0;
    row.other += outcome == Outcome::kOther ? 1 : 0;
    row.peak_mb = std::max(row.peak_mb, run->peak_mb);
    row.max_weight_norm =
        larger_norm(row.max_weight_norm, run->max_weight_norm);
    row.max_jacobian_norm =
        larger_norm(row.max_jacobian_norm, run->max_jacobian_norm);
  }
  std::vector<double> figures, losses, seconds;
  for (const RunInfo* run : group.finished) {
    figures.push_back(*figure_value(*run, figure));
    if (run->loss) losses.push_back(*run->loss);
    seconds.push_back(run->train_seconds);
  }
  row.figure = base::sample_of(figures);
  row.by_seed = figures_by_seed(group, figure);
  row.loss = base::sample_of(losses);
  row.train_seconds = base::sample_of(seconds).mean;
  return row;
}

std::vector<Group> grouped(const std::vector<RunInfo>& runs, Figure figure) {
  std::vector<Group> groups;
  for (const RunInfo& run : runs) {
    Label label = label_of(run.activation);
    auto found = std::find_if(
        groups.begin(), groups.end(),
        [&](const Group& g) { return g.label.canonical == label.canonical; });
    if (found == groups.end()) {
      groups.push_back({std::move(label), {}, {}});
      found = groups.end() - 1;
    }
    found->runs.push_back(&run);
    if (outcome_of(run, figure) == Outcome::kFinished) {
      found->finished.push_back(&run);
    }
  }
  return groups;
}

// A sentence if the runs have several values of what should be the same.
template <typename Getter>
void caution(const std::vector<RunInfo>& runs, const char* what, Getter get,
             std::vector<std::string>& cautions) {
  std::set<std::int64_t> values;
  for (const RunInfo& run : runs) values.insert(get(run));
  values.erase(0);  // not known
  if (values.size() < 2) return;
  cautions.push_back(
      fmt::format("The runs differ in {}: {}.", what, fmt::join(values, ", ")));
}

void check_tasks(const std::vector<RunInfo>& runs) {
  if (runs.empty()) {
    throw std::invalid_argument("[compare] there are no runs");
  }
  for (const RunInfo& run : runs) {
    if (run.task == runs.front().task) continue;
    throw std::invalid_argument(fmt::format(
        "[compare] runs of the tasks {} and {} cannot be compared",
        base::in_quotes(runs.front().task), base::in_quotes(run.task)));
  }
}

}  // namespace

PairedDifference paired_difference(const ComparisonRow& row,
                                   const ComparisonRow& other) {
  const std::vector<double> own = common_figures(row, other);
  const std::vector<double> theirs = common_figures(other, row);
  std::vector<double> differences(own.size());
  std::transform(own.begin(), own.end(), theirs.begin(), differences.begin(),
                 std::minus<>());
  const base::Sample sample = base::sample_of(differences);
  PairedDifference result{sample.count, sample.mean, 0};
  if (sample.count < 2) return result;
  result.half_width = base::student_t(kConfidence, sample.count - 1) *
                      sample.deviation / std::sqrt(sample.count);
  return result;
}

Comparison compare_runs(const std::vector<RunInfo>& runs) {
  check_tasks(runs);
  Comparison comparison;
  const auto& tasks = task_names();
  const std::string& task = runs.front().task;
  comparison.task = std::find(tasks.begin(), tasks.end(), task) != tasks.end()
                        ? task
                        : base::in_quotes(task);
  comparison.figure = figure_of(runs);
  for (const RunInfo& run : runs) {
    comparison.tokens =
        std::max(comparison.tokens, static_cast<double>(run.tokens));
    comparison.test_count = std::max(comparison.test_count, run.test_count);
  }
  const std::vector<Group> groups = grouped(runs, comparison.figure);
  for (std::size_t i = groups.size(); i-- > 0;) {
    if (groups[i].label.softmax) comparison.baseline = i;
  }
  for (const Group& group : groups) {
    comparison.rows.push_back(row_of(group, comparison.figure));
  }
  for (ComparisonRow& row : comparison.rows) {
    compare_with(comparison.rows[comparison.baseline], row);
  }
  auto& cautions = comparison.cautions;
  caution(
      runs, "planned steps", [](const RunInfo& r) { return r.steps; },
      cautions);
  caution(
      runs, "test examples", [](const RunInfo& r) { return r.test_count; },
      cautions);
  caution(
      runs, "tokens (N)", [](const RunInfo& r) { return r.tokens; }, cautions);
  return comparison;
}

}  // namespace polyattn::run
