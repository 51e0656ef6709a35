// The matched start: how much smaller the first scores must be for an
// activation to begin with the norm that softmax has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "polyattn/activation.h"

namespace polyattn::theory {

struct MatchOptions {
  std::int64_t tokens = 0;  // N
  // Norms are those of the last row, which sees N keys, instead of those of a
  // matrix with N such rows. The scale is the same.
  bool causal = false;
  double score_std = 1;  // of the scores as they are now
  double factor = 1;     // the target is factor times the norm of softmax
};

struct Match {
  double scale = 1;                 // of scores: deviation, at most score_std
  double gain = 1;                  // of the weights of q and of k, each
  std::optional<double> norm = {};  // at this scale; unknown with /sum
  double softmax_norm = 1;          // of softmax, at the same scale
  std::string reason = {};          // why nothing changes; else empty
};

// The largest scale s in (0, score_std] with
//
//   sqrt(E||A||_F^2) = factor * sqrt(E||softmax||_F^2)
//
// for scores N(0, s^2), if the left side is larger at score_std: scores only
// ever shrink, and no more than needed. Where it is not larger, or larger at
// every smaller scale too, or rows are divided by their sums, scale and gain
// are score_std and 1, and `reason` has the words. Throws std::invalid_argument
// ("[matched_gain] ...") for options out of range, and std::overflow_error.
Match matched_gain(const Activation& activation, const MatchOptions& options);

}  // namespace polyattn::theory
