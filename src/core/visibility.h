// Who may see whom: mask, bias, causality and window as one additive row, which
// is what the kernels work with wherever not all keys are seen.
#pragma once

#include <cstdint>

#include "core/problem.h"

namespace polyattn {

// A rectangle of the score matrix of head h of sequence b.
struct ScoreBlock {
  std::int64_t b, h;
  std::int64_t i, rows;  // queries
  std::int64_t j, cols;  // keys
};

// dst[r * ld + c]: the bias of (i + r, j + c), 0 without one, and -inf where
// the row may not see the key. T is float or double.
template <typename T>
void fill_bias_rows(const Problem& problem, const ScoreBlock& block, T* dst,
                    std::int64_t ld);

// counts[r]: keys of the block that row i + r may see. `buffer` has room for
// `chunk` values.
template <typename T>
void count_keys(const Problem& problem, const ScoreBlock& rows, T* buffer,
                std::int64_t chunk, double* counts);

// True if all rows of a sequence see the same keys under mask and bias.
bool rows_share_mask(const Problem& problem);

// True if they do, whatever it is that takes keys away.
bool rows_share_keys(const Problem& problem);

}  // namespace polyattn
