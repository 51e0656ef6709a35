// The arguments of an attention call, checked once at the boundary and brought
// into one form, so that everything behind it may assume they are right.
#pragma once

#include <algorithm>
#include <cstdint>

#include "polyattn/attention.h"

namespace polyattn {

// Rows of one sequence of the batch. For a batch that is not ragged,
// q_begin = k_begin = 0 and the batch strides lead to the sequence.
struct Sequence {
  std::int64_t batch;    // index into the batch stride: 0 if ragged
  std::int64_t q_begin;  // first query row
  std::int64_t n;        // queries
  std::int64_t k_begin;  // first key row
  std::int64_t m;        // keys
};

struct Problem {
  AttentionInputs in;
  Activation activation;
  double scale = 1;
  Causal causal = Causal::kNone;
  DType compute = DType::kF32;
  Path path = Path::kAuto;
  Dropout dropout = {};
  bool d_bias = false;  // backward: the gradient of the bias is wanted
  std::int64_t chunk = 0;
  // n and m are those of the longest sequence.
  std::int64_t batch = 0, heads = 0, kv_heads = 0, n = 0, m = 0, d = 0, e = 0;

  bool ragged() const { return !in.q_offsets.empty(); }

  Sequence sequence(std::int64_t b) const {
    if (!ragged()) return {b, 0, n, 0, m};
    const std::int64_t q = in.q_offsets[b], k = in.k_offsets[b];
    return {0, q, in.q_offsets[b + 1] - q, k, in.k_offsets[b + 1] - k};
  }

  // Keys 0 .. limit - 1 are those that causality lets row i of the sequence
  // see.
  std::int64_t causal_limit(const Sequence& s, std::int64_t i) const {
    switch (causal) {
      case Causal::kNone:
        return s.m;
      case Causal::kFirst:
        return std::min(s.m, i + 1);
      case Causal::kLast:
        return std::clamp<std::int64_t>(i + 1 + s.m - s.n, 0, s.m);
    }
    return s.m;
  }

  std::int64_t kv_head(std::int64_t h) const { return h / (heads / kv_heads); }

  // Index of a row in a dense [B, H, N] array ([1, H, total] if ragged).
  std::int64_t row_index(std::int64_t b, std::int64_t h, std::int64_t i) const {
    const Sequence s = sequence(b);
    return (s.batch * heads + h) * in.q.size[2] + s.q_begin + i;
  }
};

// Element index, from the tensor's data, of row `row` of head `head` in the
// sequence's batch entry; `row` counts from the start of the tensor's rows.
inline std::int64_t row_offset(const Extents& stride, std::int64_t batch,
                               std::int64_t head, std::int64_t row) {
  return batch * stride[0] + head * stride[1] + row * stride[2];
}

// Element index of entry (b, h, i, j) of a bias or mask, whose sizes of 1 are
// repeated, and whose first size is, whatever it is.
inline std::int64_t broadcast_offset(const Extents& size, const Extents& stride,
                                     std::int64_t b, std::int64_t h,
                                     std::int64_t i, std::int64_t j) {
  return (size[0] == 1 ? 0 : b % size[0] * stride[0]) +
         (size[1] == 1 ? 0 : h * stride[1]) +
         (size[2] == 1 ? 0 : i * stride[2]) +
         (size[3] == 1 ? 0 : j * stride[3]);
}

// These throw std::invalid_argument. `op` opens the message: "[op] ...".
Problem check_problem(const char* op, const AttentionInputs& inputs,
                      const AttentionConfig& config);
void check_results(const char* op, const Problem& problem,
                   const AttentionResults& results);
void check_backward(const char* op, const Problem& problem,
                    const AttentionBackwardInputs& backward,
                    const AttentionGradients& gradients);
// For an optional gradient of the shape of `like`.
void check_gradient(const char* op, const char* name, const ConstTensor& like,
                    const std::optional<Tensor>& gradient);

// False if a finite number that is not zero becomes zero or inf in the compute
// type.
bool fits(double x, DType compute);

// True if no element is inf or NaN.
bool all_finite(const ConstTensor& t);

}  // namespace polyattn
