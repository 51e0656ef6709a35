// The parts of a step of decoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/problem.h"
#include "polyattn/decode.h"

namespace polyattn {

// An empty call of one sequence with this shape and these options, causal, the
// last query aligned with the last key.
Problem decode_problem(const char* op, const DecodeShape& shape,
                       const DecodeOptions& options);

// Throw std::invalid_argument. The second one leaves q and o aside; there are
// to be so many tokens.
void check_decode_inputs(const char* op, const DecodeShape& shape,
                         const DecodeInputs& inputs, const Tensor& o);
void check_decode_tokens(const char* op, const DecodeShape& shape,
                         const DecodeInputs& inputs, std::int64_t tokens);

// log_decay, if it is given.
void check_decode_decay(const char* op, const DecodeShape& shape,
                        const DecodeOptions& options,
                        const DecodeInputs& inputs);

// Tokens t .. t + count - 1 of a member of the batch.
ConstTensor member_rows(const ConstTensor& t, std::int64_t member,
                        std::int64_t token, std::int64_t count);

// Rows [heads, capacity, width], of which `used` are to be kept.
struct RowsShape {
  std::int64_t heads, used, capacity, width;
};
void grow_rows(std::vector<std::byte>& rows, const RowsShape& shape,
               std::int64_t capacity, DType dtype);

// The last `count` of the used rows become the first ones.
void keep_last_rows(std::vector<std::byte>& rows, const RowsShape& shape,
                    std::int64_t count, DType dtype);

// Tokens of a member of the batch to rows `at` and on of a cache.
void copy_rows(const ConstTensor& from, std::int64_t member, std::int64_t token,
               std::int64_t count, const Tensor& cache, std::int64_t at);

// Attention on cached tokens: on the dense path, or with decay as one chunk.
void run_cached(const Problem& problem, const AttentionResults& results,
                Parallel& parallel);

// The cached keys and values of a problem into the sums.
void fold_cached(const Problem& problem, std::byte* sums, Parallel& parallel);

struct FoldedTokens {
  std::byte* sums;
  std::int64_t count;
  std::span<const double> n;  // with decay: [G], N of a row that ends with them
};

// Attention on cached tokens and sums. False if something that is not finite
// was written. T is float or double.
template <typename T>
bool attend_sums(const Problem& problem, const FoldedTokens& folded,
                 const Tensor& o, Parallel& parallel);

}  // namespace polyattn
