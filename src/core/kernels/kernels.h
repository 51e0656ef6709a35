// The kernels as plain C++ functions, on the target in use. T, the type that is
// computed in, is float or double.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/problem.h"

namespace polyattn {

// Queries in a strip, on which the size of the workspace depends.
template <typename T>
int strip_width();

template <typename T>
void dense_forward(const Problem& problem, const AttentionResults& results,
                   std::byte* workspace, Parallel& parallel);
template <typename T>
void dense_backward(const Problem& problem,
                    const AttentionBackwardInputs& inputs,
                    const AttentionGradients& gradients, std::byte* workspace,
                    Parallel& parallel);
template <typename T>
void dense_double_backward(const Problem& problem,
                           const AttentionDoubleInputs& second,
                           const AttentionDoubleGradients& gradients,
                           std::byte* workspace, Parallel& parallel);

// In linear time, for problems without a linear_obstacle(). They return how
// many values were written that are inf or NaN.
template <typename T>
std::int64_t linear_forward(const Problem& problem,
                            const AttentionResults& results,
                            std::byte* workspace, Parallel& parallel);
template <typename T>
std::int64_t linear_backward(const Problem& problem,
                             const AttentionBackwardInputs& inputs,
                             const AttentionGradients& gradients,
                             std::byte* workspace, Parallel& parallel);

// Decoding, for one sequence: state[G, features, width] += F(K)^T V, and
// sums[H, N, width] = F(Q) W state; width as in plan_linear().
template <typename T>
void fold_keys(const Problem& problem, T* state, std::byte* workspace,
               Parallel& parallel);
template <typename T>
void apply_state(const Problem& problem, T* state, T* sums,
                 std::byte* workspace, Parallel& parallel);

}  // namespace polyattn
