// gelu on torch tensors: the exact form, with gradients of every order. On the
// CPU, f32 goes through the kernels of the core; everything else is at::gelu.
#pragma once

#include <ATen/core/Tensor.h>

namespace polyattn {

at::Tensor gelu(const at::Tensor& x);

}  // namespace polyattn
