// split_rows() is split_with_sizes(), and its gradient is no copy of gradients
// that already lie as one matrix.
#include "nn/split_rows.h"

#include <torch/csrc/autograd/autograd.h>

#include "nn/support.h"

namespace polyattn::nn {
namespace split_rows_test {

using test::random_rows;

const std::vector<std::int64_t> kWidths = {4, 2, 3};

torch::Tensor gradient(const torch::Tensor& rows,
                       const std::vector<torch::Tensor>& parts,
                       const std::vector<torch::Tensor>& by_parts) {
  return torch::autograd::grad(parts, {rows}, by_parts)[0];
}

TEST(SplitRows, IsSplitWithSizes) {
  const auto rows = random_rows({2, 5, 9}).requires_grad_();
  const auto parts = split_rows(rows, kWidths);
  const auto expected = rows.split_with_sizes(kWidths, -1);
  std::vector<torch::Tensor> by_parts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    EXPECT_SAME(parts[i], expected[i]);
    EXPECT_TRUE(parts[i].is_alias_of(rows));
    by_parts.push_back(random_rows(parts[i].sizes().vec()));
  }
  EXPECT_SAME(gradient(rows, parts, by_parts), torch::cat(by_parts, -1));
}

TEST(SplitRows, TheGradientIsTheMatrixThatThePartsLieIn) {
  const auto rows = random_rows({2, 5, 9}).requires_grad_();
  const auto whole = random_rows({2, 5, 9});
  const auto dx = gradient(rows, split_rows(rows, kWidths),
                           whole.split_with_sizes(kWidths, -1));
  EXPECT_SAME(dx, whole);
  EXPECT_EQ(dx.data_ptr(), whole.data_ptr());
}

// Parts of one matrix, but not all of it in order.
TEST(SplitRows, OtherPlacesAreCopied) {
  const auto rows = random_rows({2, 5, 9}).requires_grad_();
  const auto wider = random_rows({2, 5, 10});
  const auto swapped = random_rows({2, 5, 9});
  const auto dense = random_rows({5, 2, 9}).transpose(0, 1);
  for (const auto& by_parts :
       {wider.narrow(-1, 0, 9).split_with_sizes(kWidths, -1),
        std::vector<torch::Tensor>{swapped.narrow(-1, 5, 4),
                                   swapped.narrow(-1, 3, 2),
                                   swapped.narrow(-1, 0, 3)},
        std::vector<torch::Tensor>{swapped.narrow(-1, 0, 4),
                                   swapped.narrow(-1, 4, 2),
                                   swapped.narrow(-1, 5, 3)},
        dense.split_with_sizes(kWidths, -1)}) {
    const auto dx = gradient(rows, split_rows(rows, kWidths), by_parts);
    EXPECT_SAME(dx, torch::cat(by_parts, -1));
    EXPECT_FALSE(dx.is_alias_of(by_parts[0]));
  }
}

TEST(SplitRows, APartThatIsNotUsedHasNoGradient) {
  const auto rows = random_rows({3, 9}).requires_grad_();
  const auto dx =
      torch::autograd::grad({split_rows(rows, kWidths)[1].sum()}, {rows})[0];
  auto expected = torch::zeros_like(rows);
  expected.narrow(-1, 4, 2).fill_(1);
  EXPECT_SAME(dx, expected);
}

TEST(SplitRows, CanBeDifferentiatedTwice) {
  const auto rows = random_rows({3, 9}).requires_grad_();
  const auto parts = split_rows(rows, kWidths);
  const auto y =
      (parts[0].pow(3).sum() + parts[1].pow(3).sum() + parts[2].pow(3).sum());
  const auto dx = torch::autograd::grad({y}, {rows}, {}, true, true)[0];
  const auto ddx = torch::autograd::grad({dx.sum()}, {rows})[0];
  EXPECT_SAME(ddx, 6 * rows);
}

}  // namespace split_rows_test
}  // namespace polyattn::nn
