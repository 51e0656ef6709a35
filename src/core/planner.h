// Which path a call takes.
#pragma once

#include "core/problem.h"
#include "polyattn/plan.h"

namespace polyattn {

// kDense or kLinear. Throws std::invalid_argument if the linear path is asked
// for by name and the call has none.
Path choose_path(const char* op, const Problem& problem, Direction direction);

// What POLYATTN_PLAN asks for. Throws std::invalid_argument if that is no path.
Path path_of_environment();

// Seconds of one worker.
double predict_dense(const Problem& problem, const PathCost& cost);
double predict_linear(const Problem& problem, Direction direction,
                      const PathCost& cost);

}  // namespace polyattn
