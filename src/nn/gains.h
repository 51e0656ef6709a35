// Where the gains of the matched start go: factors of the scores, by head.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace polyattn::nn {

// [H, 1, 1], of the type of `like`.
torch::Tensor gain_column(const std::vector<double>& values,
                          const torch::Tensor& like);

// Of the gains, what one part that all heads of a group share can take: the
// square root of their mean, in logarithms.
std::vector<double> shared_part(const std::vector<double>& gains,
                                std::size_t groups);

// Multiplies rows of a projection, [rows, C] or [rows], from `first` on: as
// many heads as there are factors, of head_dim rows each. Undefined: nothing.
void scale_heads(const torch::Tensor& rows, std::int64_t first,
                 std::int64_t head_dim, const std::vector<double>& factors);

}  // namespace polyattn::nn
