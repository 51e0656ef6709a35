// Forward mode: what the tensors of a call change by.
#pragma once

#include "torch/fused.h"

namespace polyattn {

// Whether a tensor of the call is dual, as torch.autograd.forward_ad makes
// them.
bool has_tangent(const Call& call);

// The call without the tangents, and these as its cotangents.
SecondCall split_tangents(const Call& call);

}  // namespace polyattn
