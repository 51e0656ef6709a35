#include "report/ranking.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/message.h"
#include "polyattn/activation.h"

namespace polyattn::report {
namespace {

using run::Comparison;
using run::Figure;
using run::RunInfo;

constexpr double kConfidence = 0.95;
constexpr int kLeastPairs = 2;
constexpr std::size_t kMaxNamed = 8;

// Figures of the finished runs by seed.
using Figures = std::map<std::int64_t, std::vector<double>>;

// Two spellings of a formula are one row, as in run::compare_runs().
std::string canonical_formula(const std::string& formula) {
  try {
    return Activation::parse(formula).to_string();
  } catch (const FormulaError&) {
    return base::in_quotes(formula);
  }
}

std::optional<double> finished_figure(const RunInfo& run, Figure figure) {
  if (run.state != run::RunState::kFinished) return std::nullopt;
  const std::optional<double> value = figure == Figure::kAccuracy ? run.accuracy
                                      : figure == Figure::kBitsPerByte
                                          ? run.bits_per_byte
                                          : run.loss;
  const bool finite =
      value && std::isfinite(*value) && std::isfinite(run.loss.value_or(0));
  return finite ? value : std::nullopt;
}

// By row: rows are in the order of their first run.
std::vector<Figures> figures_of(const Comparison& comparison,
                                const std::vector<RunInfo>& runs) {
  std::map<std::string, std::size_t> rows;
  std::vector<Figures> figures(comparison.rows.size());
  for (const RunInfo& run : runs) {
    const auto [row, is_new] =
        rows.emplace(canonical_formula(run.activation), rows.size());
    const auto value = finished_figure(run, comparison.figure);
    if (value && row->second < figures.size()) {
      figures[row->second][run.seed].push_back(*value);
    }
  }
  return figures;
}

Distance distance(const Figures& row, const Figures& best) {
  std::vector<double> differences;
  for (const auto& [seed, values] : row) {
    const auto pair = best.find(seed);
    if (pair == best.end()) continue;
    differences.push_back(base::sample_of(values).mean -
                          base::sample_of(pair->second).mean);
  }
  const base::Sample sample = base::sample_of(differences);
  Distance result{sample.count, sample.mean, 0};
  if (sample.count >= kLeastPairs) {
    result.half_width = base::student_t(kConfidence, sample.count - 1) *
                        sample.deviation / std::sqrt(sample.count);
  }
  return result;
}

std::optional<std::size_t> best_row(const Comparison& comparison) {
  const double sign = comparison.figure == Figure::kAccuracy ? 1 : -1;
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < comparison.rows.size(); ++i) {
    if (comparison.rows[i].figure.count == 0) continue;
    const double mean = sign * comparison.rows[i].figure.mean;
    if (!best || mean > sign * comparison.rows[*best].figure.mean) best = i;
  }
  return best;
}

std::string unknown_caution(std::vector<std::string> names) {
  const std::size_t more = names.size() - std::min(names.size(), kMaxNamed);
  names.resize(names.size() - more);
  return fmt::format(
      "Fewer than two seeds in common with the best, so that nothing can be "
      "said: {}{}.",
      fmt::join(names, ", "),
      more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace

Ranking rank(const Comparison& comparison, const std::vector<RunInfo>& runs) {
  Ranking ranking;
  ranking.rows.resize(comparison.rows.size());
  const auto best = best_row(comparison);
  if (!best) return ranking;
  const std::vector<Figures> figures = figures_of(comparison, runs);
  std::vector<std::string> alone;
  bool any = false;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    if (i == *best || comparison.rows[i].figure.count == 0) continue;
    const Distance found = distance(figures[i], figures[*best]);
    if (found.pairs < kLeastPairs) {
      alone.push_back(comparison.rows[i].activation);
      continue;
    }
    any = true;
    ranking.rows[i].to_best = found;
    ranking.rows[i].like_best = std::abs(found.difference) <= found.half_width;
  }
  if (any) {
    ranking.rows[*best].best = ranking.rows[*best].like_best = true;
    if (!alone.empty()) ranking.cautions.push_back(unknown_caution(alone));
  } else if (!alone.empty()) {
    ranking.cautions.emplace_back(
        "No activation is marked as the best: that takes two finished seeds or "
        "more, which show how seeds scatter.");
  }
  return ranking;
}

}  // namespace polyattn::report
