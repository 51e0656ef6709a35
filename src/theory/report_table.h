// Tables of the claims of `polyattn theory`, for a terminal. Rows of one series
// are one line: the one nearest to failing, and every one that fails.
#pragma once

#include <string>

#include "theory/claim.h"

namespace polyattn::theory {

// Of a theorem: its exponents, or all else. Empty if there are none.
std::string theorem_table(const theory::Claim& claim, bool exponents,
                          bool colours);

std::string observation_table(const theory::Claim& claim);

}  // namespace polyattn::theory
