// The norms of softmax and of polynomials against N, as a plot.
#pragma once

#include <vector>

#include "theory/claims.h"
#include "theory/plot.h"

namespace polyattn::theory {

// Lines are exact expectations and bounds, marks are measured.
Plot norms_plot(const StudyOptions& options,
                const std::vector<GaussianLength>& data);

}  // namespace polyattn::theory
