// A fast wrong answer is no figure: before a case is timed, some rows of its
// result are compared with the reference.
#pragma once

#include "bench/inputs.h"

namespace polyattn::bench {

// Compares the last rows of o (forward) or dq (backward) of the first and the
// last head, after run(), with the definition. Throws std::runtime_error.
void check_against_reference(const CaseRunner& runner);

}  // namespace polyattn::bench
