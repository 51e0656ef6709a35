// The arithmetic of nn/center_causal.h, of one sequence in f32; without torch.
#pragma once

#include <cstdint>

namespace polyattn::nn {

// o1 [rows, heads, width + 1], o [rows, heads, width], v [rows, groups, width]
// with `stride` from row to row, dv the same without gaps.
struct CenterShape {
  std::int64_t rows, heads, groups, width, stride;
};

// o = o1 + (1 - the last column of o1) * mean of v up to the row.
void center_forward(const float* o1, const float* v, const CenterShape& shape,
                    float* o);

// d_o1 and dv.
void center_backward(const float* o1, const float* v, const float* d_o,
                     const CenterShape& shape, float* d_o1, float* dv);

}  // namespace polyattn::nn
