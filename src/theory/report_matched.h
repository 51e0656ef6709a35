// The matched start of several activations and lengths, as a table and as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "theory/matched.h"

namespace polyattn::theory {

struct MatchRow {
  std::string activation;  // in canonical form
  std::int64_t tokens = 0;
  Match match;
};

// A row for each formula and length; the tokens of the options do not count.
// Throws FormulaError, and what matched_gain throws.
std::vector<MatchRow> match_rows(const std::vector<std::string>& formulas,
                                 const std::vector<std::int64_t>& lengths,
                                 MatchOptions options);

std::string match_text(const std::vector<MatchRow>& rows,
                       const MatchOptions& options);

nlohmann::ordered_json match_json(const std::vector<MatchRow>& rows);

}  // namespace polyattn::theory
