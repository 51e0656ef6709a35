// Which activation of a comparison is the best, and which cannot be told from
// it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/run/comparison.h"

namespace polyattn::report {

struct Standing {
  bool best = false;
  // Also of the best itself.
  bool like_best = false;
  // None for rows with fewer than two seeds in common with the best: of these
  // nothing is said.
  std::optional<run::PairedDifference> to_best;
};

struct Ranking {
  std::vector<Standing> rows;  // as in the comparison
  std::vector<std::string> cautions;
};

// The best row has the best mean figure of its finished runs. It is marked only
// if another row can be held against it: with one seed, or one activation,
// nothing is.
Ranking rank(const run::Comparison& comparison);

}  // namespace polyattn::report
