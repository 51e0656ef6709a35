#include "bench/windows.h"

#include <limits>
#include <vector>

namespace polyattn::bench {

Windows draw_windows(std::int64_t count, std::int64_t heads,
                     std::int64_t side) {
  const torch::Tensor far = torch::arange(side).ge(side - side / 2);
  const torch::Tensor below = far.view({side, 1}).expand({side, side});
  const torch::Tensor right = far.view({1, side}).expand({side, side});
  std::vector<torch::Tensor> masks;
  for (std::int64_t w = 0; w < count; ++w) {
    const torch::Tensor region = (below.to(torch::kInt) * (w / 2 % 2) +
                                  2 * right.to(torch::kInt) * (w % 2))
                                     .flatten();
    masks.push_back(region.unsqueeze(0).eq(region.unsqueeze(1)));
  }
  const std::int64_t n = side * side;
  const torch::Tensor mask = torch::stack(masks).unsqueeze(1);
  const torch::Tensor zero = torch::zeros(mask.sizes());
  return {.bias = torch::randn({heads, n, n}).requires_grad_(),
          .mask = mask,
          .added =
              zero.masked_fill(~mask, -std::numeric_limits<double>::infinity()),
          .divided = mask.to(torch::kFloat) /
                     mask.sum(-1, true).to(torch::kFloat).sqrt()};
}

}  // namespace polyattn::bench
