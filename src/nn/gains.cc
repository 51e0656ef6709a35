#include "nn/gains.h"

#include <cmath>

namespace polyattn::nn {

torch::Tensor gain_column(const std::vector<double>& values,
                          const torch::Tensor& like) {
  return torch::tensor(values, torch::kDouble)
      .to(like.options())
      .view({-1, 1, 1});
}

std::vector<double> shared_part(const std::vector<double>& gains,
                                std::size_t groups) {
  const std::size_t each = gains.size() / groups;
  std::vector<double> part(groups);
  for (std::size_t g = 0; g < groups; ++g) {
    double sum = 0;
    for (std::size_t i = 0; i < each; ++i) sum += std::log(gains[g * each + i]);
    part[g] = std::exp(sum / static_cast<double>(2 * each));
  }
  return part;
}

void scale_heads(const torch::Tensor& rows, std::int64_t first,
                 std::int64_t head_dim, const std::vector<double>& factors) {
  if (!rows.defined()) return;
  const auto count = static_cast<std::int64_t>(factors.size());
  torch::Tensor part =
      rows.narrow(0, first, count * head_dim).view({count, head_dim, -1});
  part.mul_(gain_column(factors, part));
}

}  // namespace polyattn::nn
