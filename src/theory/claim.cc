#include "theory/claim.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace polyattn::theory {
namespace {

constexpr double kEndless = std::numeric_limits<double>::infinity();

void conclude(Row& row, double strain) {
  row.strain = std::isnan(strain) ? kEndless : strain;
  row.verdict = row.strain <= 1 ? Verdict::kHolds : Verdict::kFails;
}

// 0/0 is no distance at all.
double share(double distance, double allowed) {
  return distance == 0 ? 0 : distance / allowed;
}

double root(double square) { return std::sqrt(std::max(0.0, square)); }

double standard_error(const Summary& s, const MeanOfSquares& mean) {
  const auto n = static_cast<double>(s.count);
  const double deviation =
      mean.variance ? std::sqrt(*mean.variance) : s.deviation;
  return deviation / std::sqrt(n);
}

Interval shown_interval(const Summary& s, const MeanOfSquares& mean) {
  if (!mean.variance) return mean_interval(s, kShownTail);
  const double half = normal_quantile(kShownTail) * standard_error(s, mean);
  return {.low = s.mean - half, .high = s.mean + half};
}

bool enough_for_catoni(const Summary& s) {
  return s.count >= robust_least_count(kDecisionTail);
}

bool decidable(const Summary& s, const MeanOfSquares& mean) {
  if (!mean.variance) return speaks_for_itself(s) || s.deviation == 0;
  constexpr double kNearlyNormal = 1.0 / 30;
  return enough_for_catoni(s) ||
         standard_error(s, mean) <= kNearlyNormal * mean.expected;
}

double known_strain(const Summary& s, const MeanOfSquares& mean) {
  const double variance = *mean.variance;
  const double rounding = mean.rounding * mean.expected;
  if (!enough_for_catoni(s)) {
    const double half =
        normal_quantile(kDecisionTail) * standard_error(s, mean);
    return share(std::abs(s.mean - mean.expected), half + rounding);
  }
  const double centre = robust_mean(mean.values, variance, kDecisionTail);
  const double half = robust_half_width(variance, s.count, kDecisionTail);
  return share(std::abs(centre - mean.expected), half + rounding);
}

double estimated_strain(const Summary& s, const MeanOfSquares& mean) {
  const Interval interval = mean_interval(s, kDecisionTail);
  const double half =
      mean.expected > s.mean ? interval.high - s.mean : s.mean - interval.low;
  return share(std::abs(s.mean - mean.expected),
               half + mean.rounding * mean.expected);
}

}  // namespace

bool holds(const Claim& claim) {
  return std::none_of(claim.rows.begin(), claim.rows.end(), [](const Row& row) {
    return row.verdict == Verdict::kFails;
  });
}

void judge_bound(Row& row, double rounding) {
  const bool at_most = row.relation == Relation::kAtMost;
  const double small = at_most ? row.measured : row.expected;
  const double large = at_most ? row.expected : row.measured;
  conclude(row, share(small, large * (1 + rounding)));
}

void judge_equality(Row& row, double allowed) {
  row.relation = Relation::kEqual;
  conclude(row, share(std::abs(row.measured - row.expected), allowed));
}

void judge_mean(Row& row, const MeanOfSquares& mean) {
  const Summary s = summarize(mean.values);
  row.relation = Relation::kEqual;
  row.samples = s.count;
  row.expected = root(mean.expected);
  row.measured = std::isfinite(s.mean) ? root(s.mean) : s.mean;
  if (!std::isfinite(s.mean)) return conclude(row, kEndless);
  const Interval interval = shown_interval(s, mean);
  row.interval = {.low = root(interval.low), .high = root(interval.high)};
  conclude(row,
           mean.variance ? known_strain(s, mean) : estimated_strain(s, mean));
  if (!decidable(s, mean)) row.verdict = Verdict::kUndecided;
}

// Half the relative error of the square.
LengthNorm length_norm(const Row& row, const MeanOfSquares& mean) {
  const Summary s = summarize(mean.values);
  const double error = standard_error(s, mean) / mean.expected;
  return {.tokens = static_cast<double>(row.tokens),
          .norm = row.measured,
          .relative_error = std::hypot(error, mean.rounding) / 2,
          .expected = row.expected};
}

void judge_exponent(Row& row, std::span<const LengthNorm> norms) {
  row.relation = Relation::kEqual;
  const auto [shortest, longest] = std::minmax_element(
      norms.begin(), norms.end(), [](const LengthNorm& a, const LengthNorm& b) {
        return a.tokens < b.tokens;
      });
  row.tokens = static_cast<std::int64_t>(shortest->tokens);
  row.tokens_to = static_cast<std::int64_t>(longest->tokens);
  if (std::any_of(norms.begin(), norms.end(), [](const LengthNorm& n) {
        return !(n.norm > 0) || !std::isfinite(n.norm);
      })) {
    row.measured = std::numeric_limits<double>::quiet_NaN();
    return conclude(row, kEndless);
  }
  const Exponent e = fit_exponent(norms);
  row.expected = e.expected;
  row.measured = e.slope;
  row.interval = exponent_interval(e, kShownTail);
  conclude(row, share(std::abs(e.slope - e.expected),
                      normal_quantile(kDecisionTail) * e.error));
}

}  // namespace polyattn::theory
