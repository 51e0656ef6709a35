// The outcome of `polyattn theory` for a terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "theory/claim.h"

namespace polyattn::theory {

// Words in lines of at most `columns`, each line behind `indent`.
std::string wrapped(std::string_view text, std::size_t columns,
                    std::string_view indent);

// Number, statement, what was computed, and tables, of each claim.
std::string claims_text(const std::vector<theory::Claim>& claims, bool colours);

// Which claims hold, and how often chance alone would have said otherwise.
std::string conclusion(const std::vector<theory::Claim>& claims);

}  // namespace polyattn::theory
