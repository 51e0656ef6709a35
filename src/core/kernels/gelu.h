// The gelu kernels as plain C++ functions, on the target in use.
#pragma once

#include <cstddef>

namespace polyattn {

void gelu_f32(const float* x, float* y, std::size_t count);
void gelu_gradient_f32(const float* x, const float* dy, float* dx,
                       std::size_t count);

}  // namespace polyattn
