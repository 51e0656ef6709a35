// The exact spread of squared norms between matrices, for queries and keys with
// independent N(0, 1) entries. Measured means are judged by it: at high degree
// rare large scores carry the mean, and a deviation that is estimated from a
// sample without them would be far too small.
#pragma once

#include "polyattn/activation.h"
#include "theory/expectation.h"

namespace polyattn::theory {

// Var ||A||_F^2 and Var ||dA/dS||_F^2, for polynomials without /sum and
// settings of Source::kQueriesKeys. Throws as the functions of expectation.h.
double weight_sq_variance(const Activation& activation, const Setting& setting);
double jacobian_sq_variance(const Activation& activation,
                            const Setting& setting);

}  // namespace polyattn::theory
