// The arithmetic of nn/rms_norm.h, in f32; without torch.
#pragma once

#include <cstdint>

namespace polyattn::nn {

// Of rows [rows, dim].
struct RmsShape {
  std::int64_t rows, dim;
  float eps;
};

// y = x * weight / sqrt(mean(x^2) + eps).
void rms_forward(const float* x, const float* weight, const RmsShape& shape,
                 float* y);

// dx; and adds the gradient of the weight to dweight [dim].
void rms_backward(const float* x, const float* weight, const float* dy,
                  const RmsShape& shape, float* dx, float* dweight);

}  // namespace polyattn::nn
