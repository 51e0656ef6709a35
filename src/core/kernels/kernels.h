// The kernels as plain C++ functions, on the target in use.
#pragma once

#include <cstddef>

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

}  // namespace polyattn
