#include "nn/rms_rows.h"

#include <array>
#include <cmath>

namespace polyattn::nn {
namespace {

constexpr std::int64_t kLanes = 8;

// In several sums, which the compiler can keep in registers side by side.
template <typename Term>
float sum_of(std::int64_t n, Term term) {
  std::array<float, kLanes> sums{};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (std::int64_t j = 0; j < kLanes; ++j)
      sums[static_cast<std::size_t>(j)] += term(i + j);
  for (; i < n; ++i) sums[0] += term(i);
  float total = 0;
  for (const float sum : sums) total += sum;
  return total;
}

float inverse_rms(const float* x, const RmsShape& s) {
  const float sum = sum_of(s.dim, [&](std::int64_t i) { return x[i] * x[i]; });
  return 1 / std::sqrt(sum / static_cast<float>(s.dim) + s.eps);
}

}  // namespace

void rms_forward(const float* x, const float* weight, const RmsShape& s,
                 float* y) {
  for (std::int64_t r = 0; r < s.rows; ++r, x += s.dim, y += s.dim) {
    const float inverse = inverse_rms(x, s);
    for (std::int64_t i = 0; i < s.dim; ++i) y[i] = x[i] * inverse * weight[i];
  }
}

// With u = x / rms and g = dy * weight: dx = (g - u mean(g u)) / rms.
void rms_backward(const float* x, const float* weight, const float* dy,
                  const RmsShape& s, float* dx, float* dweight) {
  for (std::int64_t r = 0; r < s.rows; ++r) {
    const float inverse = inverse_rms(x, s);
    const float sum =
        sum_of(s.dim, [&](std::int64_t i) { return dy[i] * weight[i] * x[i]; });
    const float share = sum * inverse * inverse / static_cast<float>(s.dim);
    for (std::int64_t i = 0; i < s.dim; ++i) {
      dx[i] = inverse * (dy[i] * weight[i] - x[i] * share);
      dweight[i] += dy[i] * x[i] * inverse;
    }
    x += s.dim;
    dy += s.dim;
    dx += s.dim;
  }
}

}  // namespace polyattn::nn
