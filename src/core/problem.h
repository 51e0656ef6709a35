// The arguments of an attention call, checked once at the boundary and brought
// into one form, so that everything behind it may assume they are right.
#pragma once

#include <algorithm>
#include <cstdint>

#include "polyattn/attention.h"
#include "polyattn/double_backward.h"

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

// Keys begin .. end - 1 of a sequence; none if the two are equal.
struct KeyRange {
  std::int64_t begin, end;
  std::int64_t count() const { return end - begin; }
  bool empty() const { return begin == end; }
  // The keys of both.
  KeyRange within(const KeyRange& other) const {
    const std::int64_t from = std::max(begin, other.begin);
    return {from, std::max(from, std::min(end, other.end))};
  }
};

struct Problem {
  AttentionInputs in;
  Activation activation;
  double scale = 1;
  Causal causal = Causal::kNone;
  DType compute = DType::kF32;
  Path path = Path::kAuto;
  Dropout dropout = {};
  Window window = {};   // -1 where it would take no key from any row
  bool d_bias = false;  // backward: the gradient of the bias is wanted
  std::int64_t chunk = 0;
  // n and m are those of the longest sequence.
  std::int64_t batch = 0, heads = 0, kv_heads = 0, n = 0, m = 0, d = 0, e = 0;

  bool decays() const { return in.log_decay.has_value(); }
  bool ragged() const { return !in.q_offsets.empty(); }

  Sequence sequence(std::int64_t b) const {
    if (!ragged()) return {b, 0, n, 0, m};
    const std::int64_t q = in.q_offsets[b], k = in.k_offsets[b];
    return {0, q, in.q_offsets[b + 1] - q, k, in.k_offsets[b + 1] - k};
  }

  bool windowed() const { return window.left >= 0 || window.right >= 0; }

  // The keys that causality and the window let row i of the sequence see.
  // Neither end ever moves back from a row to the next.
  KeyRange keys_of(const Sequence& s, std::int64_t i) const {
    const std::int64_t own = causal == Causal::kLast ? i + s.m - s.n : i;
    const auto bounded = [&](std::int64_t j) {
      return std::clamp<std::int64_t>(j, 0, s.m);
    };
    const std::int64_t ahead = causal == Causal::kNone ? window.right : 0;
    return {window.left < 0 ? 0 : bounded(own - window.left),
            ahead < 0 ? s.m : bounded(own + ahead + 1)};
  }

  // Those that any of rows i .. i + rows - 1 may see; rows > 0.
  KeyRange keys_of_any(const Sequence& s, std::int64_t i,
                       std::int64_t rows) const {
    const KeyRange first = keys_of(s, i), last = keys_of(s, i + rows - 1);
    return {first.begin, last.end};
  }

  // Those that all of these rows may see, of the keys that any of them may.
  KeyRange keys_of_all(const Sequence& s, std::int64_t i,
                       std::int64_t rows) const {
    const KeyRange first = keys_of(s, i), last = keys_of(s, i + rows - 1);
    return {last.begin, std::max(last.begin, first.end)};
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
void check_double_backward(const char* op, const Problem& problem,
                           const AttentionDoubleInputs& second,
                           const AttentionDoubleGradients& gradients);
// For an optional gradient of the shape of `like`.
void check_gradient(const char* op, const char* name, const ConstTensor& like,
                    const std::optional<Tensor>& gradient);

// False if a finite number that is not zero becomes zero or inf in the compute
// type.
bool fits(double x, DType compute);

// True if no element is inf or NaN.
bool all_finite(const ConstTensor& t);

}  // namespace polyattn
