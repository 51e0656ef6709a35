// The runs of a document side by side, task by task.
#pragma once

#include <string>
#include <vector>

#include "report/run_files.h"
#include "train/run/records.h"

namespace polyattn::report {

struct Comparisons {
  base::Json json;      // the member "comparisons" (docs/report.md)
  std::string title;    // for who has none of their own
  std::string verdict;  // empty for a single run, and for several tasks
};

// Each task and model apart, in the order of their first run. Warns of configs
// that differ in more than activation, variant and seed.
Comparisons compare_all(const std::vector<const RunFiles*>& runs);

}  // namespace polyattn::report
