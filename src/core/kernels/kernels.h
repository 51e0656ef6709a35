// The kernels as plain C++ functions, on the target in use.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/problem.h"

namespace polyattn {

// Queries in a strip, on which the size of the workspace depends.
int strip_f32();
int strip_f64();

void forward_f32(const Problem& problem, const AttentionResults& results,
                 std::byte* workspace, Parallel& parallel);
void forward_f64(const Problem& problem, const AttentionResults& results,
                 std::byte* workspace, Parallel& parallel);

void backward_f32(const Problem& problem, const AttentionBackwardInputs& inputs,
                  const AttentionGradients& gradients, std::byte* workspace,
                  Parallel& parallel);
void backward_f64(const Problem& problem, const AttentionBackwardInputs& inputs,
                  const AttentionGradients& gradients, std::byte* workspace,
                  Parallel& parallel);

// In linear time, for problems without a linear_obstacle(). They return how
// many values were written that are inf or NaN.
std::int64_t linear_forward_f32(const Problem& problem,
                                const AttentionResults& results,
                                std::byte* workspace, Parallel& parallel);
std::int64_t linear_forward_f64(const Problem& problem,
                                const AttentionResults& results,
                                std::byte* workspace, Parallel& parallel);
std::int64_t linear_backward_f32(const Problem& problem,
                                 const AttentionBackwardInputs& inputs,
                                 const AttentionGradients& gradients,
                                 std::byte* workspace, Parallel& parallel);
std::int64_t linear_backward_f64(const Problem& problem,
                                 const AttentionBackwardInputs& inputs,
                                 const AttentionGradients& gradients,
                                 std::byte* workspace, Parallel& parallel);

// Decoding, for one sequence: state[G, features, width] += F(K)^T V, and
// sums[H, N, width] = F(Q) W state; width as in plan_linear().
void fold_keys(const Problem& problem, float* state, std::byte* workspace,
               Parallel& parallel);
void fold_keys(const Problem& problem, double* state, std::byte* workspace,
               Parallel& parallel);
void apply_state(const Problem& problem, float* state, float* sums,
                 std::byte* workspace, Parallel& parallel);
void apply_state(const Problem& problem, double* state, double* sums,
                 std::byte* workspace, Parallel& parallel);

}  // namespace polyattn
