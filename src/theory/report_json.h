// The outcome of `polyattn theory` for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "theory/calibrate.h"
#include "theory/claim.h"
#include "theory/claims.h"

namespace polyattn::theory {

// One document: options, level of decision, and every row of every claim.
nlohmann::ordered_json theory_json(const theory::StudyOptions& options,
                                   const std::vector<theory::Claim>& claims);

nlohmann::ordered_json calibration_json(const theory::CalibrateOptions& options,
                                        const theory::Calibration& calibration);

}  // namespace polyattn::theory
