#include "theory/matched.h"

#include <cmath>
#include <limits>
#include <stdexcept>

#include "theory/gaussian_scores.h"

namespace polyattn::theory {
namespace {

constexpr Activation kMatchedTo{};  // softmax
constexpr double kNoBound = std::numeric_limits<double>::infinity();

void check_match(bool ok, const std::string& message) {
  if (!ok) throw std::invalid_argument("[matched_gain] " + message);
}

void check_options(const MatchOptions& o) {
  check_match(o.tokens >= 1 && o.tokens <= kMostGaussianTokens,
              "tokens " + std::to_string(o.tokens) + " is not in 1 .. " +
                  std::to_string(kMostGaussianTokens));
  check_match(o.score_std > 0 && o.score_std <= kMostScoreStd,
              "score_std " + std::to_string(o.score_std) +
                  " is not above 0 and at most " +
                  std::to_string(static_cast<int>(kMostScoreStd)));
  check_match(
      o.factor > 0 && std::isfinite(o.factor),
      "factor " + std::to_string(o.factor) + " is not a finite number above 0");
}

class MatchSearch {
 public:
  MatchSearch(const Activation& activation, const MatchOptions& options)
      : activation_(activation),
        options_(options),
        target_(options.factor * options.factor * (1 - kMargin)) {}

  // Steps down from score_std to where the target is met, and bisects the last
  // step. The largest root is missed only if the norm meets the target and
  // leaves it again within one step.
  std::optional<double> scale() const {
    constexpr int kStepsOfOctave = 8, kOctaves = 128;
    double softmax_sq = kNoBound, above = options_.score_std;
    for (int i = 1; i <= kStepsOfOctave * kOctaves; ++i) {
      const double below = options_.score_std *
                           std::exp2(-static_cast<double>(i) / kStepsOfOctave);
      if (!is_above(below, softmax_sq)) return bisect(below, above);
      above = below;
    }
    return std::nullopt;
  }

  bool is_above_now() const {
    double softmax_sq = kNoBound;
    return is_above(options_.score_std, softmax_sq);
  }

 private:
  // Rounding must not find a root at s = 1e-8 for (1 + x + x^2/2)/N, which is
  // above softmax for all s > 0 and tends to its norm, 1, for small ones.
  static constexpr double kMargin = 1e-9;

  // softmax_sq: a bound of softmax's squared norm at this scale. The norm falls
  // with the scale, so its value at a larger one will do, and often saves the
  // integral that makes it the value at this one.
  bool is_above(double scale, double& softmax_sq) const {
    const double norm_sq =
        gaussian_weight_sq(activation_, options_.tokens, scale);
    if (norm_sq > target_ * softmax_sq) return true;
    softmax_sq = gaussian_weight_sq(kMatchedTo, options_.tokens, scale);
    return norm_sq > target_ * softmax_sq;
  }

  double bisect(double below, double above) const {
    constexpr int kHalvings = 30;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (below + above) / 2;
      double softmax_sq = kNoBound;
      (is_above(middle, softmax_sq) ? above : below) = middle;
    }
    return below;
  }

  const Activation& activation_;
  const MatchOptions& options_;
  double target_;  // of the ratio of squared norms
};

// Where nothing changes.
Match unchanged(const MatchOptions& o, const char* reason) {
  return {.scale = o.score_std, .reason = reason};
}

Match match_scale(const Activation& a, const MatchOptions& o) {
  if (a.kind == ActivationKind::kSoftmax) return unchanged(o, "it is softmax");
  if (a.divisor == Divisor::kSum) {
    return unchanged(o, "its rows are divided by their sums, as softmax's are");
  }
  const MatchSearch search(a, o);
  if (!search.is_above_now()) {
    return unchanged(o, "its norm is not above the target");
  }
  const std::optional<double> scale = search.scale();
  if (!scale) {
    return unchanged(o, "its norm is above the target at every smaller scale");
  }
  return {.scale = *scale, .gain = std::sqrt(*scale / o.score_std)};
}

}  // namespace

Match matched_gain(const Activation& activation, const MatchOptions& options) {
  check_options(options);
  Match match = match_scale(activation, options);
  const double rows =
      options.causal ? static_cast<double>(options.tokens) : 1.0;
  const auto norm = [&](const Activation& a) {
    return std::sqrt(gaussian_weight_sq(a, options.tokens, match.scale) / rows);
  };
  match.softmax_norm = norm(kMatchedTo);
  const bool known = activation.kind == ActivationKind::kSoftmax ||
                     activation.divisor != Divisor::kSum;
  if (known) match.norm = norm(activation);
  return match;
}

}  // namespace polyattn::theory
