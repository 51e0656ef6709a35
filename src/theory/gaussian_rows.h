// Rows of claims on Gaussian queries and keys: means and exponents.
#pragma once

#include <vector>

#include "theory/claims.h"

namespace polyattn::theory {

// Which of the measured norms, and what they are norms of.
struct GaussianForm {
  std::vector<SampledNorms> GaussianLength::*norms = nullptr;
  bool scaled = false;
  bool causal = false;
};

// For A and dA/dS and every degree: a row for each length, and one for the
// exponent where there are two lengths or more.
void add_gaussian_rows(Claim& claim, const StudyOptions& options,
                       const std::vector<GaussianLength>& data,
                       const GaussianForm& form,
                       const Expectations& expectations);

}  // namespace polyattn::theory
