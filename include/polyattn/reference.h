// The definition of attention: plain loops in double precision, as attention.h
// states it, one row at a time. Slow on purpose; every kernel is tested
// against it. Storage types are those of the tensors; config.compute is
// ignored.
#pragma once

#include "polyattn/attention.h"

namespace polyattn {

void reference_forward(const AttentionInputs& inputs,
                       const AttentionConfig& config,
                       const AttentionResults& results);

void reference_backward(const AttentionInputs& inputs,
                        const AttentionConfig& config, const ConstTensor& d_o,
                        const AttentionGradients& gradients);

}  // namespace polyattn
