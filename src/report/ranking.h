// Which activation of a comparison is the best, and which cannot be told from
// it.
#pragma once

#include <string>
#include <vector>

#include "train/run/comparison.h"

namespace polyattn::report {

struct Standing {
  bool best = false;
  // Also of the best itself. Not of rows with fewer than two seeds in common
  // with it: of these nothing is said.
  bool like_best = false;
};

struct Ranking {
  std::vector<Standing> rows;  // as in the comparison
  std::vector<std::string> cautions;
};

// The best row has the best mean figure of its finished runs. It is marked only
// if another row can be held against it: with one seed, or one activation,
// nothing is. The intervals hold for all rows at once and whichever row is
// truly the best, so that it is among those that are like the best in 95 % of
// comparisons.
Ranking rank(const run::Comparison& comparison);

}  // namespace polyattn::report
