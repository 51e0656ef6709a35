// The parts of XCiT, each against its definition in torch ops.
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/container/sequential.h>

#include <cmath>
#include <numbers>

#include "nn/support.h"
#include "polyattn/nn/attention.h"
#include "polyattn/nn/conv_patches.h"
#include "polyattn/nn/fourier_positions.h"
#include "polyattn/nn/initialise.h"
#include "polyattn/nn/xca_block.h"

namespace polyattn::nn {
namespace xca_test {

using test::expect_error;
using test::expect_gradients;
using test::random_rows;

constexpr std::int64_t kDim = 12;
constexpr std::int64_t kHeads = 3;

template <typename Module>
Module drawn(Module module) {
  torch::manual_seed(5);
  module->to(torch::kDouble);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : module->parameters()) parameter.normal_(0, 0.5);
  return module;
}

// f of scores [.., M].
torch::Tensor weights_of(const torch::Tensor& s, const std::string& formula) {
  if (formula == "softmax") return s.softmax(-1);
  return s.pow(3) / std::sqrt(static_cast<double>(s.size(-1)));
}

torch::Tensor plain_xca(CrossCovarianceImpl& a, const torch::Tensor& x) {
  const std::int64_t d = kDim / kHeads;
  const auto qkv = torch::linear(x, a.in_proj_weight, a.in_proj_bias)
                       .view({x.size(0), x.size(1), 3, kHeads, d})
                       .permute({2, 0, 3, 4, 1});  // [3, B, H, d, N]
  const auto unit = [](const torch::Tensor& t) {
    return t / t.square().sum(-1, true).sqrt();
  };
  const auto s = torch::matmul(unit(qkv[0]), unit(qkv[1]).transpose(-2, -1)) *
                 a.temperature.view({-1, 1, 1});
  const auto o = torch::matmul(weights_of(s, a.options.activation()), qkv[2]);
  return a.out_proj->forward(o.permute({0, 3, 1, 2}).flatten(2));
}

// Gradients of x and of all parameters.
std::vector<torch::Tensor> gradients(const torch::nn::Module& module,
                                     const torch::Tensor& y,
                                     const torch::Tensor& x) {
  std::vector<torch::Tensor> inputs = module.parameters();
  inputs.push_back(x);
  const auto weight = torch::arange(y.numel(), torch::kDouble).view(y.sizes());
  return torch::autograd::grad({(y * weight.cos()).sum()}, inputs);
}

TEST(CrossCovariance, IsItsDefinition) {
  for (const std::string formula : {"softmax", "x^3/sqrt(N)"}) {
    SCOPED_TRACE(formula);
    auto a = drawn(CrossCovariance(
        CrossCovarianceOptions(kDim, kHeads).activation(formula)));
    const auto x = random_rows({2, 7, kDim}).requires_grad_();
    const auto y = a->forward(x), expected = plain_xca(*a, x);
    EXPECT_SAME(y, expected);
    const auto actual = gradients(*a, y, x);
    const auto wanted = gradients(*a, expected, x);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      SCOPED_TRACE(i);
      if (wanted[i].abs().max().item<double>() < 1e-9) continue;
      EXPECT_SAME(actual[i], wanted[i]);
    }
  }
}

TEST(CrossCovariance, BeginsAtATemperatureOfOne) {
  const CrossCovariance a(CrossCovarianceOptions(kDim, kHeads));
  EXPECT_TRUE(a->temperature.equal(torch::ones({kHeads})));
  EXPECT_EQ(a->kind(), "channel");
}

// Rows of zeros have no direction.
TEST(CrossCovariance, TakesRowsOfZeros) {
  auto a = drawn(CrossCovariance(CrossCovarianceOptions(kDim, kHeads)));
  const torch::NoGradGuard no_grad;
  a->in_proj_bias.zero_();
  const auto y = a->forward(torch::zeros({1, 4, kDim}, torch::kDouble));
  EXPECT_TRUE(y.isfinite().all().item<bool>());
}

TEST(CrossCovariance, DropsInTrainingOnly) {
  auto a = drawn(CrossCovariance(CrossCovarianceOptions(kDim, kHeads)
                                     .dropout(0.5)
                                     .projection_dropout(0.2)));
  const auto x = random_rows({2, 5, kDim});
  EXPECT_FALSE(a->forward(x).equal(a->forward(x)));
  a->eval();
  EXPECT_SAME(a->forward(x), plain_xca(*a, x));
}

// That of nn::Attention with the same weights, of its first row.
TEST(ClassAttention, IsTheFirstRowOfAttention) {
  for (const std::string formula : {"softmax", "x^3/sqrt(N)"}) {
    SCOPED_TRACE(formula);
    auto a = drawn(ClassAttention(
        ClassAttentionOptions(kDim, kHeads).activation(formula)));
    Attention all(AttentionOptions(kDim, kHeads).activation(formula));
    all->to(torch::kDouble);
    {
      const torch::NoGradGuard no_grad;
      for (const auto& item : a->named_parameters()) {
        all->named_parameters()[item.key()].copy_(item.value());
      }
    }
    const auto x = random_rows({2, 7, kDim}).requires_grad_();
    const auto y = a->forward(x);
    const auto expected = all->forward(x).narrow(1, 0, 1);
    EXPECT_SAME(y, expected);
    const auto of_x = [&](const torch::Tensor& rows) {
      return torch::autograd::grad({rows.pow(3).sum()}, {x})[0];
    };
    EXPECT_SAME(of_x(y), of_x(expected));
    EXPECT_EQ(a->kind(), "class");
  }
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

TEST(XcaBlock, IsItsDefinition) {
  const Grid grid{2, 3};
  auto block = drawn(XcaBlock(XcaBlockOptions(kDim, kHeads)));
  block->eval();
  const auto x = random_rows({2, 6, kDim});
  auto y = x + block->layer_scale1->weight *
                   block->attention->forward(block->norm1->forward(x));
  y = y + block->layer_scale3->weight *
              block->local->forward(block->norm3->forward(y), grid);
  y = y + block->layer_scale2->weight *
              block->mlp->forward(block->norm2->forward(y));
  EXPECT_SAME(block->forward(x, grid), y);
}

TEST(XcaBlock, DropsPathsOfAllBranches) {
  auto block = XcaBlock(XcaBlockOptions(kDim, kHeads).drop_path(0.999999));
  const auto x = torch::randn({2, 6, kDim});
  EXPECT_TRUE(block->forward(x, {2, 3}).equal(x));
}

TEST(ClassBlock, IsItsDefinition) {
  for (const bool tokens_norm : {true, false}) {
    SCOPED_TRACE(tokens_norm);
    auto block = drawn(ClassBlock(XcaBlockOptions(kDim, kHeads), tokens_norm));
    const auto x = random_rows({2, 6, kDim});
    const torch::NoGradGuard no_grad;
    auto u = block->norm1->forward(x).clone();
    u.narrow(1, 0, 1).copy_(
        block->attention->forward(block->norm1->forward(x)));
    auto y = x + block->layer_scale1->weight * u;
    if (tokens_norm) {
      y = block->norm2->forward(y);
    } else {
      y.narrow(1, 0, 1).copy_(block->norm2->forward(y.narrow(1, 0, 1)));
    }
    auto branch = y.clone();
    branch.narrow(1, 0, 1).copy_(block->layer_scale2->weight *
                                 block->mlp->forward(y.narrow(1, 0, 1)));
    EXPECT_SAME(block->forward(x), y + branch);
  }
}

TEST(XcaBlock, IsInitialised) {
  auto block = drawn(XcaBlock(XcaBlockOptions(kDim, kHeads).layer_scale(0.1)));
  block->forward(random_rows({2, 6, kDim}), {2, 3});
  initialise(*block, {"vit"});
  EXPECT_TRUE(block->attention->temperature.eq(1).all().item<bool>());
  EXPECT_TRUE(block->attention->in_proj_bias.eq(0).all().item<bool>());
  EXPECT_LE(block->attention->in_proj_weight.abs().max().item<double>(), 0.04);
  EXPECT_TRUE(block->local->norm->weight.eq(1).all().item<bool>());
  EXPECT_TRUE(block->local->norm->running_mean.eq(0).all().item<bool>());
  EXPECT_TRUE(block->layer_scale3->weight.eq(0.1).all().item<bool>());
  // gpt2 divides the ends of the branches by sqrt(2 blocks), here one.
  initialise(*block, {"gpt2"});
  EXPECT_NEAR(block->mlp->fc2->weight.std().item<double>(),
              0.02 / std::sqrt(2.0), 0.002);
  ClassAttention attention(ClassAttentionOptions(kDim, kHeads));
  initialise(*attention, InitialiseOptions("vit").qk_gain(0));
  const auto parts = attention->in_proj_weight.split(kDim);
  EXPECT_TRUE(parts[0].eq(0).all().item<bool>());
  EXPECT_TRUE(parts[1].eq(0).all().item<bool>());
  EXPECT_FALSE(parts[2].eq(0).any().item<bool>());
}

// Both kinds keep a gain where it multiplies their scores by it.
TEST(XcaParts, MatchTheNormOfSoftmax) {
  for (const std::string formula : {"x^3/sqrt(N)", "x^2/sqrt(N)"}) {
    SCOPED_TRACE(formula);
    const auto x = 3 * random_rows({2, 9, kDim});
    auto channels = drawn(CrossCovariance(
        CrossCovarianceOptions(kDim, kHeads).activation(formula)));
    auto of_class = drawn(ClassAttention(
        ClassAttentionOptions(kDim, kHeads).activation(formula)));
    {
      const torch::NoGradGuard no_grad;
      channels->temperature.fill_(4);
    }
    const auto check = [&](auto& attention) {
      const auto start = match_start(
          *attention, [&] { attention->forward(x); }, 0.5);
      ASSERT_EQ(start.size(), 1U);
      attention->watch_norms(true);
      attention->watch_other("softmax");
      attention->forward(x);
      const auto own = attention->norms()->weight.mean(0);
      const auto softmax = attention->other_norms()->weight.mean(0);
      for (std::int64_t h = 0; h < kHeads; ++h) {
        EXPECT_LT(start[0][static_cast<std::size_t>(h)].gain, 1);
        // The search ends at 1e-4 in the logarithm.
        EXPECT_NEAR(
            own[h].template item<double>() / softmax[h].template item<double>(),
            0.5, 1e-4);
      }
    };
    check(channels);
    check(of_class);
  }
}

// The start of a model in use is that of the same model in training.
TEST(XcaParts, MatchByTheStatisticsOfTheBatch) {
  const auto start_of = [&](bool training) {
    auto patches = drawn(ConvPatchEmbedding(ConvPatchOptions(4, kDim)));
    CrossCovarianceOptions attention(kDim, kHeads);
    attention.activation("x^2");
    torch::nn::Sequential model(patches, CrossCovariance(attention));
    model->to(torch::kDouble);
    model->train(training);
    const auto images = 5 + torch::randn({2, 3, 16, 16}, torch::kDouble);
    const auto start = match_start(
        *model, [&] { model->forward(images); }, 0.01);
    EXPECT_EQ(model->is_training(), training);
    EXPECT_EQ(patches->norms->is_training(), training);
    const auto& norm = patches->norms->at<torch::nn::BatchNorm2dImpl>(0);
    EXPECT_EQ(norm.running_mean.eq(0).all().item<bool>(), !training);
    EXPECT_EQ(norm.num_batches_tracked.item<std::int64_t>(), training ? 1 : 0);
    return start.at(0).at(0).gain;
  };
  EXPECT_DOUBLE_EQ(start_of(true), start_of(false));
}

TEST(XcaParts, Refuse) {
  expect_error([] { CrossCovariance(CrossCovarianceOptions(8, 3)); },
               "[CrossCovariance] dim 8 is no positive multiple of heads 3");
  expect_error([] { CrossCovariance(CrossCovarianceOptions(8, 0)); },
               "[CrossCovariance] heads 0 < 1");
  expect_error([] { ClassAttention(ClassAttentionOptions(0, 3)); },
               "[ClassAttention] dim 0 is no positive multiple of heads 3");
  expect_error(
      [] {
        CrossCovariance(CrossCovarianceOptions(8, 2))
            ->forward(torch::zeros({2, 8}));
      },
      "[CrossCovariance] x of size [2, 8] is not [B, N, 8]");
  expect_error(
      [] {
        ClassAttention(ClassAttentionOptions(8, 2))
            ->forward(torch::zeros({2, 0, 8}));
      },
      "[ClassAttention] x of size [2, 0, 8] is not [B, N, 8] with N > 0");
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
  expect_error(
      [] {
        XcaBlockOptions options(8, 2);
        options.mlp().dim(6);
        const XcaBlock block(options);
      },
      "[XcaBlock] mlp dim 6 != attention dim 8");
}

}  // namespace xca_test
}  // namespace polyattn::nn
