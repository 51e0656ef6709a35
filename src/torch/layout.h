// What the fused ops allocate: the same on the CPU and on "meta".
#pragma once

#include <ATen/ATen.h>

namespace polyattn {

// [B, H, N, E], laid out as q is: where q is a view of [B, N, H, D], as a
// projection gives it, so is the output, and the next projection needs no copy.
inline at::Tensor empty_output(const at::Tensor& q, std::int64_t e) {
  const std::int64_t b = q.size(0), h = q.size(1), n = q.size(2);
  const bool rows_outside = h > 1 && n > 1 && q.stride(2) > q.stride(1);
  return rows_outside ? at::empty({b, n, h, e}, q.options()).transpose(1, 2)
                      : at::empty({b, h, n, e}, q.options());
}

// As t, with dense rows and no two elements in one place.
inline at::Tensor empty_gradient(const at::Tensor& t) {
  return empty_output(t, t.size(3));
}

// Two doubles for each row.
inline at::Tensor empty_rows(const at::Tensor& q) {
  return at::empty({q.size(0), q.size(1), q.size(2), 2},
                   q.options().dtype(at::kDouble));
}

inline at::Tensor empty_norms(const at::Tensor& q, bool wanted) {
  return wanted ? at::empty({q.size(0), q.size(1), 4},
                            q.options().dtype(at::kDouble))
                : at::empty({0}, q.options().dtype(at::kDouble));
}

}  // namespace polyattn
