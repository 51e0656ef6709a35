// The arithmetic of nn/depthwise.h, in f32; without torch.
#pragma once

#include <cstdint>

namespace polyattn::nn {

struct Window {
  std::int64_t height = 1, width = 1;
  std::int64_t top = 0, left = 0;
};

// Of x and y [batch, height, width, channels].
struct DepthwiseShape {
  std::int64_t batch, height, width, channels;
  Window window;

  std::int64_t places() const { return height * width; }
  std::int64_t taps() const { return window.height * window.width; }
};

// y of places [first, last) of all batch * height * width. Streams the rows of
// x once: those that a window spans stay in the cache.
void depthwise_forward(const float* x, const float* taps,
                       const DepthwiseShape& shape, std::int64_t first,
                       std::int64_t last, float* y);

// Adds what these places give to dtaps [taps, channels].
void depthwise_taps_backward(const float* x, const float* dy,
                             const DepthwiseShape& shape, std::int64_t first,
                             std::int64_t last, float* dtaps);

}  // namespace polyattn::nn
