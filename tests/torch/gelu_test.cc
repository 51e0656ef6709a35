// gelu on torch tensors against torch's own, derivatives included.
#include "polyattn/torch/gelu.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace polyattn {
namespace gelu_test {

// Both are within a few roundings of the exact value; gradients have values of
// order one, and the second derivative divides nothing.
constexpr double kClose = 1e-6;

TEST(Gelu, AgreesWithTorchUpToTheSecondDerivative) {
  torch::manual_seed(1);
  const torch::Tensor x = (3 * torch::randn({7, 33})).t().requires_grad_();
  const torch::Tensor dy = torch::randn({33, 7});
  const torch::Tensor weight = torch::randn({33, 7});
  std::vector<std::vector<torch::Tensor>> results;
  for (const bool ours : {true, false}) {
    const torch::Tensor y = ours ? polyattn::gelu(x) : torch::gelu(x);
    const torch::Tensor dx =
        torch::autograd::grad({y}, {x}, {dy}, true, true)[0];
    const torch::Tensor ddx =
        torch::autograd::grad({dx}, {x}, {weight}, true, true)[0];
    const torch::Tensor third = torch::autograd::grad({ddx.sum()}, {x})[0];
    results.push_back({y, dx, ddx, third});
  }
  for (std::size_t i = 0; i < results[0].size(); ++i) {
    const torch::Tensor scale = results[1][i].abs().clamp_min(1);
    const torch::Tensor error = (results[0][i] - results[1][i]).abs() / scale;
    EXPECT_LE(error.max().item<double>(), (1 << i) * kClose) << i;
  }
}

TEST(Gelu, OtherTypesAreTorchsOwn) {
  for (const auto type : {torch::kDouble, torch::kBFloat16}) {
    const torch::Tensor x = torch::randn({5}).to(type);
    EXPECT_TRUE(torch::equal(polyattn::gelu(x), torch::gelu(x)));
  }
  EXPECT_EQ(polyattn::gelu(torch::empty({0, 3})).sizes(),
            torch::IntArrayRef({0, 3}));
}

}  // namespace gelu_test
}  // namespace polyattn
