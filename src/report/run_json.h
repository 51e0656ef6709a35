// One run as a piece of the document, cut to a number of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "report/run_files.h"
#include "report/series.h"

namespace polyattn::report {

// About how many bytes the parts of a run may take.
struct RunBudget {
  std::size_t config = 0;
  std::size_t train = 0;
  std::size_t eval = 0;
  std::size_t norms = 0;

  bool operator==(const RunBudget&) const = default;
};

// For a document of so many bytes and runs.
RunBudget run_budget(std::size_t bytes, std::size_t runs);

// Finished steps: run.json of a run that goes on is as old as its last
// checkpoint.
std::int64_t shown_step(const run::RunInfo& info, const RunSeries& series);

// The member of "runs" (docs/report.md). `maps` and `solution` are JSON text,
// "null" if there are none.
std::string run_json(const RunFacts& facts, const RunSeries& series,
                     const RunBudget& budget, std::string_view maps,
                     std::string_view solution);

}  // namespace polyattn::report
