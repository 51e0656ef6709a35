// A chunk of a causal call as a call of its own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/linear_plan.h"
#include "core/problem.h"

namespace polyattn {

struct Range {
  std::int64_t begin, count;
};

// Rows of some heads of a batch entry, as a tensor of batch 1.
ConstTensor slice_rows(const ConstTensor& t, std::int64_t batch,
                       const Range& heads, const Range& rows);

// Query heads first .. first + count - 1, which use key head `key`.
struct ChunkHeads {
  Sequence seq;
  std::int64_t b, first, count, key;
};
struct ChunkRows {
  std::int64_t q0, q1, k0, k1;
};

// With `raw` the weights are not divided, except by `sum`.
Problem chunk_problem(const Problem& problem, const ChunkHeads& heads,
                      const ChunkRows& rows, bool raw);

// Bytes that the dense kernels need for any chunk of the plan. `strip`: queries
// in a strip of theirs.
template <typename T>
std::size_t dense_chunk_bytes(const Problem& problem, const LinearPlan& plan,
                              int strip, bool backward);

}  // namespace polyattn
