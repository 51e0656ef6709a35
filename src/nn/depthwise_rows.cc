#include "nn/depthwise_rows.h"

#include <array>
#include <vector>

namespace polyattn::nn {
namespace {

// Sums that the compiler can keep in registers.
constexpr std::int64_t kLanes = 16;

// The place that a tap reads for another; -1 beyond the edge.
std::int64_t source_of(const DepthwiseShape& s, std::int64_t place,
                       std::int64_t tap) {
  const Window& w = s.window;
  const std::int64_t row = place / s.width + tap / w.width - w.top;
  const std::int64_t column = place % s.width + tap % w.width - w.left;
  const bool inside =
      row >= 0 && row < s.height && column >= 0 && column < s.width;
  return inside ? row * s.width + column : -1;
}

struct Product {
  const float *a, *b;
};

// y = the sum of the products, for n channels.
void sum_products(const std::vector<Product>& products, std::int64_t n,
                  float* y) {
  std::int64_t c = 0;
  for (; c + kLanes <= n; c += kLanes) {
    std::array<float, kLanes> sums{};
    for (const Product& p : products)
      for (std::size_t i = 0; i < kLanes; ++i)
        sums[i] += p.a[c + static_cast<std::int64_t>(i)] *
                   p.b[c + static_cast<std::int64_t>(i)];
    for (std::size_t i = 0; i < kLanes; ++i)
      y[c + static_cast<std::int64_t>(i)] = sums[i];
  }
  for (; c < n; ++c) {
    y[c] = 0;
    for (const Product& p : products) y[c] += p.a[c] * p.b[c];
  }
}

}  // namespace

void depthwise_forward(const float* x, const float* taps,
                       const DepthwiseShape& s, std::int64_t first,
                       std::int64_t last, float* y) {
  std::vector<Product> products;
  for (std::int64_t i = first; i < last; ++i) {
    const std::int64_t place = i % s.places();
    products.clear();
    for (std::int64_t k = 0; k < s.taps(); ++k) {
      const std::int64_t source = source_of(s, place, k);
      if (source >= 0)
        products.push_back(
            {x + (i - place + source) * s.channels, taps + k * s.channels});
    }
    sum_products(products, s.channels, y + i * s.channels);
  }
}

void depthwise_taps_backward(const float* x, const float* dy,
                             const DepthwiseShape& s, std::int64_t first,
                             std::int64_t last, float* dtaps) {
  for (std::int64_t i = first; i < last; ++i) {
    const std::int64_t place = i % s.places();
    const float* const outer = dy + i * s.channels;
    for (std::int64_t k = 0; k < s.taps(); ++k) {
      const std::int64_t source = source_of(s, place, k);
      if (source < 0) continue;
      const float* const from = x + (i - place + source) * s.channels;
      float* const sum = dtaps + k * s.channels;
      for (std::int64_t c = 0; c < s.channels; ++c)
        sum[c] += from[c] * outer[c];
    }
  }
}

}  // namespace polyattn::nn
