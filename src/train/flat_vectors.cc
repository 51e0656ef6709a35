#include "train/flat_vectors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace polyattn::train {

// In four sums, which the compiler can keep in one register.
double dot(std::span<const float> a, std::span<const float> b) {
  const float* x = a.data();
  const float* y = b.data();
  const std::size_t count = a.size();
  std::array<double, 4> sums{};
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (std::size_t j = 0; j < 4; ++j) {
      sums[j] += static_cast<double>(x[i + j]) * static_cast<double>(y[i + j]);
    }
  }
  for (; i < count; ++i) {
    sums[0] += static_cast<double>(x[i]) * static_cast<double>(y[i]);
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

double largest_magnitude(std::span<const float> values) {
  float largest = 0;
  for (const float value : values) {
    largest = std::max(largest, std::fabs(value));
  }
  return largest;
}

double sum_of_magnitudes(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += std::fabs(value);
  return sum;
}

void add_scaled(float factor, std::span<const float> x, std::span<float> y) {
  for (std::size_t i = 0; i < x.size(); ++i) y[i] += factor * x[i];
}

void set_scaled_sum(std::span<const float> a, float factor,
                    std::span<const float> x, std::span<float> y) {
  for (std::size_t i = 0; i < a.size(); ++i) y[i] = a[i] + factor * x[i];
}

}  // namespace polyattn::train
