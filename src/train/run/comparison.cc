#include "train/run/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>

#include "base/message.h"
#include "polyattn/activation.h"
#include "train/run/config.h"
#include "train/run/models.h"
#include "train/run/tasks.h"

namespace polyattn::run {
namespace {

// Two spellings of a formula are one activation. Text that is no formula comes
// from a file that somebody else wrote.
struct Label {
  std::string canonical;
  std::string shown;
  std::string variant;
  bool baseline = false;  // softmax, and no variant of it
};

// As it is, unless somebody else wrote it who means harm.
std::string shown_variant(const RunInfo& run) {
  constexpr std::size_t kMaxBytes = 1000;
  std::string variant = run.variant.value_or("");
  const bool printable =
      std::all_of(variant.begin(), variant.end(),
                  [](char c) { return c >= ' ' && c <= '~'; });
  return printable && variant.size() <= kMaxBytes ? variant
                                                  : base::in_quotes(variant);
}

Label label_of(const RunInfo& run) {
  const std::string variant = shown_variant(run);
  try {
    const Activation activation = Activation::parse(run.activation);
    return {activation.to_string(), run.activation, variant,
            variant.empty() && activation.kind == ActivationKind::kSoftmax};
  } catch (const FormulaError&) {
    const std::string quoted = base::in_quotes(run.activation);
    return {quoted, quoted, variant};
  }
}

std::optional<double> figure_value(const RunInfo& run, Figure figure) {
  if (!run.result) return std::nullopt;
  switch (figure) {
    case Figure::kAccuracy:
      return run.result->accuracy;
    case Figure::kBitsPerByte:
      return run.result->bits_per_byte;
    case Figure::kRelativeL2:
      return run.result->relative_l2;
    default:
      return run.result->loss;
  }
}

// What the runs have, the accuracy first.
Figure figure_of(const std::vector<RunInfo>& runs) {
  for (const Figure figure :
       {Figure::kAccuracy, Figure::kBitsPerByte, Figure::kRelativeL2}) {
    if (std::any_of(runs.begin(), runs.end(), [&](const RunInfo& run) {
          return figure_value(run, figure).has_value();
        })) {
      return figure;
    }
  }
  return Figure::kLoss;
}

enum class Outcome { kFinished, kDiverged, kOther };

Outcome outcome_of(const RunInfo& run, Figure figure) {
  if (run.state == RunState::kDiverged) return Outcome::kDiverged;
  const auto value = figure_value(run, figure);
  if (run.state != RunState::kFinished || !value) return Outcome::kOther;
  // The accuracy of a model that computes NaN is finite, its loss is not.
  const bool finite = std::isfinite(*value) && std::isfinite(run.result->loss);
  return finite ? Outcome::kFinished : Outcome::kDiverged;
}

// NaN is worse than anything.
double larger_norm(double a, double b) {
  return std::isnan(a) || a > b ? a : b;
}

// The runs of one activation and variant.
struct Group {
  Label label;
  std::vector<const RunInfo*> runs;
  std::vector<const RunInfo*> finished;
};

SeedFigures figures_by_seed(const Group& group, Figure figure) {
  std::map<std::int64_t, std::vector<double>> values;
  for (const RunInfo* run : group.finished) {
    values[run->seed].push_back(*figure_value(*run, figure));
  }
  SeedFigures means;
  for (const auto& [seed, all] : values)
    means[seed] = base::sample_of(all).mean;
  return means;
}

// A row's mean over the seeds that both rows have.
double common_mean(const ComparisonRow& row, const ComparisonRow& other) {
  std::vector<double> figures;
  for (const auto& [seed, value] : row.by_seed) {
    if (other.by_seed.contains(seed)) figures.push_back(value);
  }
  return base::sample_of(figures).mean;
}

void compare_with_baseline(Comparison& comparison) {
  const Differences found = differences_to(comparison, comparison.baseline);
  comparison.basis = found.basis;
  const ComparisonRow& baseline = comparison.rows[comparison.baseline];
  for (std::size_t i = 0; i < comparison.rows.size(); ++i) {
    ComparisonRow& row = comparison.rows[i];
    row.difference = found.rows[i];
    row.paired_mean = common_mean(row, baseline);
    row.baseline_mean = common_mean(baseline, row);
  }
}

ComparisonRow row_of(const Group& group, Figure figure) {
  ComparisonRow row;
  row.activation = group.label.shown;
  row.variant = group.label.variant;
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
  std::vector<double> figures, losses, seconds, relative_l1;
  for (const RunInfo* run : group.finished) {
    figures.push_back(*figure_value(*run, figure));
    losses.push_back(run->result->loss);
    seconds.push_back(run->train_seconds);
    if (const auto error = run->result->relative_l1) {
      relative_l1.push_back(*error);
    }
  }
  row.figure = base::sample_of(figures);
  row.by_seed = figures_by_seed(group, figure);
  row.loss = base::sample_of(losses);
  row.relative_l1 = base::sample_of(relative_l1);
  row.train_seconds = base::sample_of(seconds).mean;
  return row;
}

std::vector<Group> grouped(const std::vector<RunInfo>& runs, Figure figure) {
  std::vector<Group> groups;
  for (const RunInfo& run : runs) {
    Label label = label_of(run);
    auto found =
        std::find_if(groups.begin(), groups.end(), [&](const Group& g) {
          return g.label.canonical == label.canonical &&
                 g.label.variant == label.variant;
        });
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

void note_validation(const std::vector<RunInfo>& runs, Comparison& comparison) {
  const auto count =
      std::count_if(runs.begin(), runs.end(),
                    [](const RunInfo& r) { return r.split == kValidation; });
  comparison.validation = count == std::ssize(runs);
  if (count == 0) return;
  comparison.cautions.emplace_back(
      comparison.validation
          ? "The figures are of validation data, not of the test set."
          : "The runs differ in what they were evaluated on: some on "
            "validation data, the others on the test set.");
}

void check_tasks(const std::vector<RunInfo>& runs) {
  if (runs.empty()) {
    throw std::invalid_argument("[compare] there are no runs");
  }
  for (const RunInfo& run : runs) {
    if (run.task != runs.front().task) {
      throw std::invalid_argument(fmt::format(
          "[compare] runs of the tasks {} and {} cannot be compared",
          base::in_quotes(runs.front().task), base::in_quotes(run.task)));
    }
    const std::string one = subject_of(runs.front()), other = subject_of(run);
    if (one == other) continue;
    throw std::invalid_argument(
        fmt::format("[compare] runs on {} and on {} cannot be compared: their "
                    "models differ",
                    base::in_quotes(one), base::in_quotes(other)));
  }
}

}  // namespace

Differences differences_to(const Comparison& comparison,
                           std::size_t reference) {
  std::vector<SeedFigures> figures;
  for (const ComparisonRow& row : comparison.rows) {
    figures.push_back(row.by_seed);
  }
  const bool counted =
      comparison.figure == Figure::kAccuracy && comparison.test_count > 0;
  return differences_to(
      reference, figures,
      counted ? 1 / static_cast<double>(comparison.test_count) : 0);
}

Comparison compare_runs(const std::vector<RunInfo>& runs) {
  check_tasks(runs);
  Comparison comparison;
  const std::string subject = subject_of(runs.front());
  const auto& model = runs.front().model;
  const bool known = find_task(runs.front().task) != nullptr &&
                     (!model || find_model(*model) != nullptr);
  comparison.task = known ? subject : base::in_quotes(subject);
  comparison.figure = figure_of(runs);
  for (const RunInfo& run : runs) {
    comparison.tokens =
        std::max(comparison.tokens, static_cast<double>(run.tokens));
    comparison.test_count = std::max(comparison.test_count, run.test_count);
  }
  const std::vector<Group> groups = grouped(runs, comparison.figure);
  for (std::size_t i = groups.size(); i-- > 0;) {
    if (groups[i].label.baseline) comparison.baseline = i;
  }
  for (const Group& group : groups) {
    comparison.rows.push_back(row_of(group, comparison.figure));
  }
  compare_with_baseline(comparison);
  auto& cautions = comparison.cautions;
  note_validation(runs, comparison);
  caution(
      runs, "planned steps", [](const RunInfo& r) { return r.steps; },
      cautions);
  caution(
      runs, comparison.validation ? "validation examples" : "test examples",
      [](const RunInfo& r) { return r.test_count; }, cautions);
  caution(
      runs, "tokens (N)", [](const RunInfo& r) { return r.tokens; }, cautions);
  return comparison;
}

}  // namespace polyattn::run
