// The definition of attention: plain loops in double precision, as attention.h
// states it, one row at a time. Slow on purpose; every kernel is tested
// against it. Storage types are those of the tensors; config.compute is
// ignored.
#pragma once

#include "polyattn/attention.h"
#include "polyattn/double_backward.h"

namespace polyattn {

void reference_forward(const AttentionInputs& inputs,
                       const AttentionConfig& config,
                       const AttentionResults& results);

void reference_backward(const AttentionInputs& inputs,
                        const AttentionConfig& config, const ConstTensor& d_o,
                        const AttentionGradients& gradients);

// Rows are computed again; those that are given are not read.
void reference_double_backward(const AttentionInputs& inputs,
                               const AttentionConfig& config,
                               const AttentionDoubleInputs& second,
                               const AttentionDoubleGradients& gradients);

}  // namespace polyattn
