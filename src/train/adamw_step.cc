#include "train/adamw_step.h"

#include <array>
#include <cmath>
#include <cstddef>

namespace polyattn::train {

// In four sums, which the compiler can keep in one register.
double sum_of_squares(std::span<const float> values) {
  const float* x = values.data();
  const std::size_t count = values.size();
  std::array<double, 4> sums{};
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (std::size_t j = 0; j < 4; ++j) {
      const double value = x[i + j];
      sums[j] += value * value;
    }
  }
  for (; i < count; ++i) sums[0] += static_cast<double>(x[i]) * x[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

void adamw_step(const AdamWFactors& factors, const AdamWArrays& arrays) {
  // Copies: what is stored below could change them, as far as the compiler
  // knows.
  const auto [clip, b1, b2, shrink, rate, root, eps] = factors;
  const float* g = arrays.gradient.data();
  float* w = arrays.weight.data();
  float* m = arrays.m.data();
  float* v = arrays.v.data();
  for (std::size_t i = 0; i < arrays.gradient.size(); ++i) {
    const float gradient = g[i] * clip;
    m[i] = b1 * m[i] + (1 - b1) * gradient;
    v[i] = b2 * v[i] + (1 - b2) * gradient * gradient;
    w[i] = shrink * w[i] - rate * m[i] / (std::sqrt(v[i]) * root + eps);
  }
}

void move_average(float keep, std::span<const float> weight,
                  std::span<float> average) {
  for (std::size_t i = 0; i < weight.size(); ++i) {
    average[i] = keep * average[i] + (1 - keep) * weight[i];
  }
}

}  // namespace polyattn::train
