// Cross attention against its definition, and wavelets.
#include "polyattn/nn/cross_attention.h"

#include "nn/support.h"
#include "polyattn/nn/attention.h"
#include "polyattn/nn/wavelet.h"

namespace polyattn::nn {
namespace cross_attention_test {

using test::expect_error;
using test::expect_gradients;
using test::random_rows;

CrossAttention made(const char* formula) {
  CrossAttention layer(CrossAttentionOptions(12, 3).activation(formula));
  layer->to(torch::kDouble);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : layer->parameters()) parameter.normal_();
  return layer;
}

torch::Tensor heads_of(const torch::Tensor& rows) {
  return rows.unflatten(-1, {3, 4}).transpose(1, 2);
}

TEST(CrossAttention, IsItsFormula) {
  torch::manual_seed(1);
  const auto x = random_rows({2, 5, 12}), source = random_rows({2, 7, 12});
  for (const char* formula : {"softmax", "x^3/sqrt(N)"}) {
    SCOPED_TRACE(formula);
    CrossAttention layer = made(formula);
    const auto w = layer->in_proj_weight.chunk(3);
    const auto b = layer->in_proj_bias.chunk(3);
    const auto q = heads_of(torch::linear(x, w[0], b[0]));
    const auto k = heads_of(torch::linear(source, w[1], b[1]));
    const auto v = heads_of(torch::linear(source, w[2], b[2]));
    const auto scores = torch::matmul(q, k.transpose(-1, -2)) / 2;
    const auto a = std::string(formula) == "softmax"
                       ? scores.softmax(-1)
                       : scores.pow(3) / std::sqrt(7.0);
    const auto rows = torch::matmul(a, v).transpose(1, 2).flatten(2);
    EXPECT_SAME(layer->forward(x, source), layer->out_proj->forward(rows));
    layer->forward(x, source).square().sum().backward();
    EXPECT_GT(layer->in_proj_weight.grad().abs().min().item<double>(), 0);
  }
}

// Of the rows themselves it is self-attention, with the same parameters.
TEST(CrossAttention, IsAttentionOfTheSameRows) {
  torch::manual_seed(2);
  CrossAttention cross = made("x^2/sqrt(N)");
  Attention own(AttentionOptions(12, 3).activation("x^2/sqrt(N)"));
  own->to(torch::kDouble);
  {
    const torch::NoGradGuard no_grad;
    auto ours = own->named_parameters();
    for (const auto& item : cross->named_parameters())
      ours[item.key()].copy_(item.value());
  }
  const auto x = random_rows({2, 5, 12});
  EXPECT_SAME(cross->forward(x, x), own->forward(x));
}

TEST(CrossAttention, GainsMultiplyScores) {
  torch::manual_seed(3);
  const auto x = random_rows({2, 5, 12}), source = random_rows({2, 7, 12});
  CrossAttention layer = made("x^3/sqrt(N)");
  layer->watch_norms(true);
  layer->forward(x, source);
  EXPECT_EQ(layer->keys(), 7);
  const auto before = layer->norms()->weight.clone();
  const torch::NoGradGuard no_grad;
  layer->apply_gains({0.5, 1, 2});
  layer->forward(x, source);
  const auto cubed = torch::tensor({0.125, 1.0, 8.0}, torch::kDouble);
  EXPECT_SAME(layer->norms()->weight, before * cubed);
}

TEST(CrossAttention, RefusesWhatDoesNotFit) {
  CrossAttention layer(CrossAttentionOptions(12, 3));
  const auto x = torch::zeros({2, 5, 12});
  expect_error(
      [&] {
        layer->forward(torch::zeros({5, 12}), x);
      },
      "[CrossAttention] x of size [5, 12] is not [B, N, 12]");
  expect_error(
      [&] {
        layer->forward(x, torch::zeros({2, 5, 8}));
      },
      "[CrossAttention] source of size [2, 5, 8] is not [B, N, 12]");
  expect_error(
      [&] {
        layer->forward(x, torch::zeros({3, 5, 12}));
      },
      "[CrossAttention] batch of x 2 != batch of source 3");
  expect_error([] { CrossAttention bad(CrossAttentionOptions(10, 3)); },
               "[CrossAttention] dim 10 is no positive multiple of heads 3");
}

TEST(Wavelet, IsItsFormula) {
  torch::manual_seed(4);
  Wavelet layer;
  layer->to(torch::kDouble);
  const auto x = random_rows({3, 4});
  EXPECT_SAME(layer->forward(x), x.sin() + x.cos());
  {
    const torch::NoGradGuard no_grad;
    layer->w1.fill_(0.5);
    layer->w2.fill_(-2);
  }
  EXPECT_SAME(layer->forward(x), 0.5 * x.sin() - 2 * x.cos());
  layer->forward(x).sum().backward();
  expect_gradients(*layer);
}

}  // namespace cross_attention_test
}  // namespace polyattn::nn
