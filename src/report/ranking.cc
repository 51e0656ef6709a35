#include "report/ranking.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace polyattn::report {
namespace {

using run::Comparison;
using run::Figure;

constexpr std::size_t kMaxNamed = 8;

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

Ranking rank(const Comparison& comparison) {
  Ranking ranking;
  ranking.rows.resize(comparison.rows.size());
  const auto best = best_row(comparison);
  if (!best) return ranking;
  const std::vector<run::ComparisonRow>& rows = comparison.rows;
  std::vector<std::string> alone;
  bool any = false;
  const run::Differences to_best = run::differences_to(comparison, *best);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i == *best || rows[i].figure.count == 0) continue;
    const run::Difference& difference = to_best.rows[i];
    if (!difference.half_width) {
      alone.push_back(rows[i].name());
      continue;
    }
    any = true;
    ranking.rows[i].like_best =
        std::abs(difference.mean) <= *difference.half_width;
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
