// The derivative of the fused backward, and what it is in forward mode.
#pragma once

#include <torch/csrc/autograd/custom_function.h>

#include "torch/fused.h"

namespace polyattn {

// By d_o and the tensors of the call, in the order of saved_call.h; undefined
// where nothing wants a gradient. By the kernel where that can do it; the
// derivative of that, and what else there is, by the composed definition.
torch::autograd::variable_list double_gradients(const SecondCall& second);

// What o changes by if the tensors of the call change by the cotangents,
// differentiable itself.
at::Tensor output_tangent(const SecondCall& second);

}  // namespace polyattn
