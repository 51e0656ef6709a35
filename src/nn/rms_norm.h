// y = x * weight / sqrt(mean(x^2) + eps), over the last dimension.
#pragma once

#include <torch/types.h>

namespace polyattn::nn {

// x [..., C], weight [C]. In f32 on the CPU it is one pass, and one for the
// gradients, where torch ops would take five and some ten; otherwise those.
torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& weight,
                       double eps);

}  // namespace polyattn::nn
