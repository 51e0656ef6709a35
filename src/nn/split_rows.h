// Rows cut into parts, whose gradients are put together without a copy where
// they already lie side by side.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace polyattn::nn {

// As rows.split_with_sizes(widths, -1).
std::vector<torch::Tensor> split_rows(const torch::Tensor& rows,
                                      const std::vector<std::int64_t>& widths);

}  // namespace polyattn::nn
