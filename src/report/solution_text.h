// The solution of an equation in the document: RUN/solution.json
// (train/run/solution.h) in two bytes a number, on no more points than a screen
// can tell apart.
//
//   { "columns": { "name": "x", "values": [0, 0.0628, ...] },
//     "rows": { "name": "t", "values": [...] },
//     "exact": { "low": -1, "step": 3.05e-05, "values": "base64 of uint16" },
//     "error": { ... } }
//
// Little endian, row by row: low + step * value, and 65535 for what is not
// finite, or beyond 1e300. The error is what the model says less the solution:
// it has steps of its own, which those of the solution would swallow.
#pragma once

#include <cstddef>
#include <string>

#include "train/run/solution.h"

namespace polyattn::report {

// Values of an axis, of those that are shown: of more, as many as this, spread
// evenly.
inline constexpr std::size_t kMostShownValues = 128;

// The solution must be one that parse_solution() gives.
std::string solution_text(const run::Solution& solution);

}  // namespace polyattn::report
