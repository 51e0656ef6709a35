// Which activation of a comparison is the best, and which cannot be told from
// it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/run/comparison.h"

namespace polyattn::report {

// Of a row against the best one, over the seeds that have both: mean difference
// of the figure and half of its 95 % interval.
struct Distance {
  int pairs = 0;
  double difference = 0;
  double half_width = 0;
};

struct Standing {
  bool best = false;
  // Also of the best itself.
  bool like_best = false;
  // None for rows with fewer than two seeds in common with the best: of these
  // nothing is said.
  std::optional<Distance> to_best;
};

struct Ranking {
  std::vector<Standing> rows;  // as in the comparison
  std::vector<std::string> cautions;
};

// The best row has the best mean figure of its finished runs. It is marked only
// if another row can be held against it: with one seed, or one activation,
// nothing is. `runs` are those that `comparison` was made from.
Ranking rank(const run::Comparison& comparison,
             const std::vector<run::RunInfo>& runs);

}  // namespace polyattn::report
