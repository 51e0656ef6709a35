// The element-wise part of materialised attention, one row at a time, with the
// best instruction set of the machine whatever POLYATTN_TARGET says. Softmax,
// and polynomials that are not divided by their sum.
#pragma once

#include <cstdint>

#include "polyattn/activation.h"

namespace polyattn::bench {

bool materialised_supports(const Activation& activation);

// weights[j] = A(scores[j]) for j < seen, 0 for seen <= j < keys. In place if
// the two are the same.
void materialised_weights(const Activation& activation, std::int64_t seen,
                          std::int64_t keys, const float* scores,
                          float* weights);

// gradient[j]: dL/dA_j on entry, dL/ds_j on return.
void materialised_score_gradient(const Activation& activation,
                                 std::int64_t seen, std::int64_t keys,
                                 const float* scores, const float* weights,
                                 float* gradient);

}  // namespace polyattn::bench
