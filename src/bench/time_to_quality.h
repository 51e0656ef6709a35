// `polyattn bench time-to-quality TASK`: from the command line to the table.
#pragma once

#include <optional>
#include <string>

#include "bench/options.h"
#include "bench/quality.h"

namespace polyattn::bench {

struct QualityOutcome {
  std::string text;
  Report report;
};

// Trains what is not trained yet, by `polyattn compare`, and times the steps.
// Throws UsageError without torch, and what the parts of it throw.
QualityOutcome time_to_quality(const Options& options);

}  // namespace polyattn::bench
