// `polyattn theory --run`: the norms of a trained model beside the theory, and
// the constant that fits its scores.
#pragma once

#include "cli/theory_run.h"

namespace polyattn::cli {

// Prints a table or JSON. kExitFailure if a norm is beyond a proven bound.
int show_trained(const TheoryRunOptions& options, bool json);

// The constant c with which c x^degree has the norm of softmax on the queries
// and keys of a softmax run, layer by layer and for all together. Throws
// UsageError for a run with another activation.
int show_calibrated_run(const TheoryRunOptions& options, int degree, bool json);

}  // namespace polyattn::cli
