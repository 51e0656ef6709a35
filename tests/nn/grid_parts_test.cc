// What XCiT does on the grid of the patches, each part against its definition.
#include <cmath>
#include <numbers>

#include "nn/support.h"
#include "polyattn/nn/conv_patches.h"
#include "polyattn/nn/fourier_positions.h"
#include "polyattn/nn/local_interaction.h"

namespace polyattn::nn {
namespace grid_parts_test {

using test::expect_error;
using test::random_rows;

constexpr std::int64_t kDim = 12;

template <typename Module>
Module drawn(Module module) {
  torch::manual_seed(5);
  module->to(torch::kDouble);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : module->parameters()) parameter.normal_(0, 0.5);
  return module;
}

torch::Tensor on_grid(const torch::Tensor& rows, const Grid& grid) {
  return rows.transpose(1, 2).unflatten(2, {grid.height, grid.width});
}

TEST(LocalInteraction, IsItsDefinition) {
  const Grid grid{3, 4};
  auto local = drawn(LocalInteraction(kDim));
  const auto x = random_rows({2, 12, kDim});
  const auto plain = [&](const torch::Tensor& rows, const auto& bn) {
    auto y = local->conv1->forward(on_grid(rows, grid));
    y = bn(torch::gelu(y));
    return local->conv2->forward(y).flatten(2).transpose(1, 2);
  };
  const auto affine = [&](const torch::Tensor& y, const torch::Tensor& mean,
                          const torch::Tensor& var) {
    return (y - mean.view({-1, 1, 1})) / (var.view({-1, 1, 1}) + 1e-5).sqrt() *
               local->norm->weight.view({-1, 1, 1}) +
           local->norm->bias.view({-1, 1, 1});
  };
  // In training by the batch, from which the running values move by a tenth.
  torch::Tensor mean, var;
  const auto expected = plain(x, [&](const torch::Tensor& y) {
    mean = y.mean({0, 2, 3});
    var = y.var({0, 2, 3}, /*unbiased=*/false);
    return affine(y, mean, var);
  });
  EXPECT_SAME(local->forward(x, grid), expected);
  EXPECT_SAME(local->norm->running_mean, 0.1 * mean);
  EXPECT_SAME(local->norm->running_var, 0.9 + 0.1 * var * 24 / 23);
  EXPECT_EQ(local->norm->num_batches_tracked.item<std::int64_t>(), 1);
  // In use by the running values.
  local->eval();
  EXPECT_SAME(local->forward(x, grid), plain(x, [&](const torch::Tensor& y) {
                return affine(y, local->norm->running_mean,
                              local->norm->running_var);
              }));
  // f32 has a kernel of its own: 2^-24 times some tens of terms.
  const auto wide = local->forward(x, grid);
  local->to(torch::kFloat);
  EXPECT_LE(
      test::relative_error(local->forward(x.to(torch::kFloat), grid), wide),
      1e-5);
}

TEST(ConvPatchEmbedding, IsItsDefinition) {
  auto patches =
      drawn(ConvPatchEmbedding(ConvPatchOptions(8, kDim).channels(2)));
  ASSERT_EQ(patches->convs->size(), 3U);
  EXPECT_EQ(patches->convs->at<torch::nn::Conv2dImpl>(0).weight.sizes(),
            (std::vector<std::int64_t>{kDim / 4, 2, 3, 3}));
  const auto images = torch::randn({2, 2, 16, 24}, torch::kDouble);
  patches->eval();
  torch::Tensor x = images;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& conv = patches->convs->at<torch::nn::Conv2dImpl>(i);
    const auto& norm = patches->norms->at<torch::nn::BatchNorm2dImpl>(i);
    if (i > 0) x = torch::gelu(x);
    x = torch::conv2d(x, conv.weight, {}, 2, 1);
    x = x / std::sqrt(1 + 1e-5) * norm.weight.view({-1, 1, 1}) +
        norm.bias.view({-1, 1, 1});
  }
  const auto rows = patches->forward(images);
  EXPECT_SAME(rows, x.flatten(2).transpose(1, 2));
  EXPECT_EQ(rows.sizes(), (std::vector<std::int64_t>{2, 6, kDim}));
  EXPECT_TRUE(rows.is_contiguous());
  EXPECT_EQ(patches->grid(16, 24).width, 3);
}

TEST(FourierPositions, AreTheirFormula) {
  const Grid grid{2, 3};
  auto positions = drawn(FourierPositions(kDim));
  const auto zero = torch::zeros({1, 6, kDim}, torch::kDouble);
  const auto rows = positions->forward(zero, grid);
  auto expected = torch::zeros({1, 6, kDim}, torch::kDouble);
  const auto weight = positions->projection->weight.flatten(1);
  for (std::int64_t i = 0; i < 6; ++i) {
    const double at[] = {(i / 3 + 1) / (2 + 1e-6), (i % 3 + 1) / (3 + 1e-6)};
    auto sum = positions->projection->bias.clone();
    for (int channel = 0; channel < 64; ++channel) {
      const double angle = at[channel / 32] * 2 * std::numbers::pi /
                           std::pow(10000, channel % 32 / 2 * 2 / 32.0);
      const double wave = channel % 2 == 0 ? std::sin(angle) : std::cos(angle);
      sum = sum + wave * weight.select(1, channel);
    }
    expected[0][i] = sum.detach();
  }
  EXPECT_SAME(rows, expected);
  const auto x = random_rows({2, 6, kDim});
  EXPECT_SAME(positions->forward(x, grid), x + rows);
}

TEST(GridParts, Refuse) {
  expect_error(
      [] {
        LocalInteraction(8)->forward(torch::zeros({2, 5, 8}), {2, 3});
      },
      "[LocalInteraction] x of size [2, 5, 8] is not [B, 6, 8], for a grid of "
      "2 x 3");
  expect_error(
      [] {
        FourierPositions(8)->forward(torch::zeros({2, 6, 7}), {2, 3});
      },
      "[FourierPositions] x of size [2, 6, 7] is not [B, 6, 8], for a grid of "
      "2 x 3");
  expect_error([] { ConvPatchEmbedding(ConvPatchOptions(12, 8)); },
               "[ConvPatchEmbedding] patch_size 12 is no power of 2 above 1");
  expect_error([] { ConvPatchEmbedding(ConvPatchOptions(16, 12)); },
               "[ConvPatchEmbedding] dim 12 is no positive multiple of 8, half "
               "of patch_size");
  expect_error(
      [] {
        ConvPatchEmbedding(ConvPatchOptions(4, 8))
            ->forward(torch::zeros({1, 3, 8, 10}));
      },
      "[ConvPatchEmbedding] images of 8 x 10 are no multiple of patch_size 4");
}

}  // namespace grid_parts_test
}  // namespace polyattn::nn
