// What a comparison with libtorch looks at before it measures.
#pragma once

#include <torch/types.h>

#include <string>

namespace polyattn::bench {

// Throws std::runtime_error if they differ. Both compute in f32 with sums in
// different orders: what differs by more than a thousandth of the largest value
// is another function.
void check_equal(const std::string& name, const torch::Tensor& ours,
                 const torch::Tensor& theirs);

}  // namespace polyattn::bench
