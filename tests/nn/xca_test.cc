// The attentions of XCiT and its blocks, each against its definition in torch
// ops, and their start.
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/container/sequential.h>

#include <cmath>

#include "nn/support.h"
#include "polyattn/nn/attention.h"
#include "polyattn/nn/conv_patches.h"
#include "polyattn/nn/initialise.h"
#include "polyattn/nn/xca_block.h"

namespace polyattn::nn {
namespace xca_test {

using test::expect_error;
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
  const auto begin_of = [](const auto& make) {
    try {
      make();
    } catch (const c10::Error& error) {
      const std::string text = error.what_without_backtrace();
      return text.substr(0, text.find(':'));
    }
    return std::string();
  };
  EXPECT_EQ(begin_of([] {
              CrossCovariance(CrossCovarianceOptions(8, 2).activation("x^"));
            }),
            "[CrossCovariance] bad activation");
  EXPECT_EQ(begin_of([] {
              ClassAttention(ClassAttentionOptions(8, 2).activation("x^"));
            }),
            "[ClassAttention] bad activation");
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
        XcaBlockOptions options(8, 2);
        options.mlp().dim(6);
        const XcaBlock block(options);
      },
      "[XcaBlock] mlp dim 6 != attention dim 8");
}

}  // namespace xca_test
}  // namespace polyattn::nn
