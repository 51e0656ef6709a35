// What was searched before the runs of a document: grid.json of their
// comparisons.
#pragma once

#include <vector>

#include "report/run_files.h"

namespace polyattn::report {

// The member "grids" (docs/report.md), in the order of the runs. A file that is
// damaged, or has chosen nothing yet, is left out.
base::Json grids_of(const std::vector<RunFiles*>& runs);

}  // namespace polyattn::report
