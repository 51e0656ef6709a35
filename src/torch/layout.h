// What the fused ops allocate: the same on the CPU and on "meta".
#pragma once

#include <ATen/ATen.h>

#include <array>

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

// Whether t [B, H, N, D] is a part of the rows of a dense [B, N, width].
inline bool is_part_of_rows(const at::Tensor& t, std::int64_t width) {
  return t.stride(0) == t.size(2) * width && t.stride(1) == t.size(3) &&
         t.stride(2) == width && t.stride(3) == 1;
}

// Those of q, k and v that are wanted. Where the three are side by side in the
// rows of one matrix [B, N, q k v], as one projection gives them, so are their
// gradients: they are the gradient of that matrix, without a copy.
inline std::array<at::Tensor, 3> empty_gradients(
    const std::array<at::Tensor, 3>& inputs, std::array<bool, 3> wanted) {
  const auto& [q, k, v] = inputs;
  const auto width_of = [](const at::Tensor& t) {
    return t.size(1) * t.size(3);
  };
  const std::int64_t width = width_of(q) + width_of(k) + width_of(v);
  bool together = q.is_alias_of(k) && q.is_alias_of(v) &&
                  k.storage_offset() - q.storage_offset() == width_of(q) &&
                  v.storage_offset() - k.storage_offset() == width_of(k);
  for (std::size_t i = 0; i < 3; ++i) {
    together = together && wanted[i] && inputs[i].size(2) == q.size(2) &&
               is_part_of_rows(inputs[i], width);
  }
  std::array<at::Tensor, 3> gradients;
  if (!together) {
    for (std::size_t i = 0; i < 3; ++i) {
      if (wanted[i]) gradients[i] = empty_gradient(inputs[i]);
    }
    return gradients;
  }
  const at::Tensor rows = at::empty({q.size(0), q.size(2), width}, q.options());
  std::int64_t first = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const at::Tensor& t = inputs[i];
    gradients[i] = rows.narrow(2, first, width_of(t))
                       .unflatten(2, {t.size(1), t.size(3)})
                       .transpose(1, 2);
    first += width_of(t);
  }
  return gradients;
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
