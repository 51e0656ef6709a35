// Long vectors of f32 on stretches of memory: without torch, so that it is
// compiled with full optimisation. Sums are in double, in an order that only
// the length decides.
#pragma once

#include <span>

namespace polyattn::train {

double dot(std::span<const float> a, std::span<const float> b);

double largest_magnitude(std::span<const float> values);
double sum_of_magnitudes(std::span<const float> values);

// y = y + factor x
void add_scaled(float factor, std::span<const float> x, std::span<float> y);

// y = a + factor x
void set_scaled_sum(std::span<const float> a, float factor,
                    std::span<const float> x, std::span<float> y);

}  // namespace polyattn::train
