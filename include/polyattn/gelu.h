// The activation between the layers of a transformer's mlp, which takes a
// tenth of a block's time where it is not fused:
//
//   gelu(x) = x Phi(x)      Phi the distribution function of N(0, 1)
//
// Values are those of the exact form, not of the tanh approximation.
#pragma once

#include <span>

#include "polyattn/parallel.h"

namespace polyattn {

// y = gelu(x). y may be x. Throws std::invalid_argument if lengths differ.
void gelu_forward(std::span<const float> x, std::span<float> y,
                  Parallel& parallel);

// dx = dy gelu'(x). dx may be x or dy.
void gelu_backward(std::span<const float> x, std::span<const float> dy,
                   std::span<float> dx, Parallel& parallel);

}  // namespace polyattn
