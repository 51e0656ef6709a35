// The matched start, against norms of explicit matrices in double.
#include "polyattn/nn/match.h"

#include <cmath>
#include <limits>

#include "nn/root_search.h"
#include "nn/support.h"
#include "polyattn/nn/block.h"

namespace polyattn::nn {
namespace match_test {

using test::expect_error;
using test::random_rows;

constexpr std::int64_t kDim = 24;
constexpr std::int64_t kHeads = 4;

Attention make_attention(const AttentionOptions& options) {
  torch::manual_seed(3);
  Attention attention(options);
  attention->to(torch::kDouble);
  const torch::NoGradGuard no_grad;
  attention->in_proj_weight.mul_(2);
  if (options.bias()) attention->in_proj_bias.normal_(0, 0.1);
  return attention;
}

Attention make_attention(const std::string& formula) {
  return make_attention(AttentionOptions(kDim, kHeads).activation(formula));
}

std::vector<LayerStart> match(Attention& attention, const torch::Tensor& x,
                              double factor = 1) {
  return match_start(
      *attention, [&] { attention->forward(x); }, factor);
}

// Scores [B, H, N, N] of a module without norms and rotation.
torch::Tensor scores_of(AttentionImpl& a, const torch::Tensor& x) {
  const std::int64_t d = a.head_dim(), h = a.options.heads(), g = a.kv_heads();
  const auto rows = torch::linear(x, a.in_proj_weight, a.in_proj_bias)
                        .unflatten(-1, {h + 2 * g, d})
                        .transpose(1, 2);
  const auto keys = rows.narrow(1, h, g).repeat_interleave(h / g, 1);
  const auto s = torch::matmul(rows.narrow(1, 0, h), keys.transpose(-2, -1));
  return s / std::sqrt(static_cast<double>(d));
}

// Means over the batch, by head.
torch::Tensor norms_of(const torch::Tensor& a) {
  return a.square().flatten(2).sum(-1).sqrt().mean(0);
}

torch::Tensor member(const LayerStart& layer, double HeadStart::*value) {
  std::vector<double> values;
  for (const HeadStart& head : layer) values.push_back(head.*value);
  return torch::tensor(values, torch::kDouble);
}

// The search stops where the logarithm of a norm is within 1e-4.
void expect_close(const torch::Tensor& actual, const torch::Tensor& expected) {
  EXPECT_LE(test::relative_error(actual, expected), 2e-4);
}

TEST(MatchStart, PutsEachHeadAtSoftmaxsNorm) {
  const auto x = random_rows({8, 20, kDim});
  for (const double factor : {1.0, 0.3}) {
    Attention attention = make_attention("x^3/sqrt(N)");
    const auto before =
        norms_of(scores_of(*attention, x).pow(3)) / std::sqrt(20.);
    const auto starts = match(attention, x, factor);
    ASSERT_EQ(starts.size(), 1U);
    const auto s = scores_of(*attention, x);
    const auto own = norms_of(s.pow(3)) / std::sqrt(20.);
    const auto softmax = norms_of(s.softmax(-1));
    expect_close(own, factor * softmax);
    EXPECT_SAME(member(starts[0], &HeadStart::before), before);
    EXPECT_LE(test::relative_error(member(starts[0], &HeadStart::after), own),
              1e-9);
    EXPECT_LE(
        test::relative_error(member(starts[0], &HeadStart::softmax), softmax),
        1e-9);
    EXPECT_TRUE(member(starts[0], &HeadStart::gain).lt(1).all().item<bool>());
  }
}

// The first rows of softmax are large whatever the scores are, so the last
// eighth decides.
TEST(MatchStart, CausalAttentionIsMatchedInItsLastRows) {
  const auto x = random_rows({6, 32, kDim});
  Attention attention = make_attention(
      AttentionOptions(kDim, kHeads).activation("x^2/sqrt(N)").causal(true));
  match(attention, x);
  const auto hidden = torch::ones({32, 32}, torch::kBool).triu(1);
  const auto s = scores_of(*attention, x);
  const auto seen = torch::arange(1, 33, torch::kDouble).sqrt().view({-1, 1});
  const auto own = s.square().masked_fill(hidden, 0) / seen;
  const auto softmax =
      s.masked_fill(hidden, -std::numeric_limits<double>::infinity())
          .softmax(-1);
  expect_close(norms_of(own.narrow(2, 28, 4)),
               norms_of(softmax.narrow(2, 28, 4)));
}

TEST(MatchStart, HeadsThatShareKeysAreEachMatched) {
  const auto x = random_rows({5, 16, kDim});
  Attention attention = make_attention(
      AttentionOptions(kDim, kHeads).kv_heads(2).activation("2x^3/sqrt(N)"));
  match(attention, x);
  const auto s = scores_of(*attention, x);
  expect_close(norms_of(2 * s.pow(3)) / 4, norms_of(s.softmax(-1)));
}

// x/N, relu/N: below softmax at any scale. 1 + x: N at scores of zero. x^4/sum:
// the same at any scale.
TEST(MatchStart, LeavesWhatNoScaleBringsThere) {
  const auto x = random_rows({3, 16, kDim});
  for (const char* formula : {"x/N", "relu/N", "1 + x", "x^4/sum"}) {
    SCOPED_TRACE(formula);
    Attention attention = make_attention(formula);
    const auto weight = attention->in_proj_weight.clone();
    const auto starts = match(attention, x, 1.5);
    ASSERT_EQ(starts.size(), 1U);
    EXPECT_TRUE(attention->in_proj_weight.equal(weight));
    EXPECT_TRUE(member(starts[0], &HeadStart::gain).eq(1).all().item<bool>());
  }
}

TEST(MatchStart, SoftmaxIsNotTouched) {
  Attention attention = make_attention("softmax");
  const auto weight = attention->in_proj_weight.clone();
  EXPECT_TRUE(match(attention, random_rows({3, 16, kDim})).empty());
  EXPECT_TRUE(attention->in_proj_weight.equal(weight));
}

TEST(MatchStart, ALearnedScaleStartsThere) {
  const auto x = random_rows({4, 16, kDim});
  Attention attention = make_attention(AttentionOptions(kDim, kHeads)
                                           .activation("x^3/sqrt(N)")
                                           .qk_norm("rms")
                                           .learned_scale(true));
  const auto weight = attention->in_proj_weight.clone();
  const auto scale = attention->score_scale.clone();
  const auto starts = match(attention, x);
  EXPECT_TRUE(attention->in_proj_weight.equal(weight));
  EXPECT_SAME(attention->score_scale / scale,
              member(starts[0], &HeadStart::gain));
  attention->watch_norms(true);
  attention->watch_other("softmax");
  attention->forward(x);
  expect_close(attention->norms()->weight.mean(0),
               attention->other_norms()->weight.mean(0));
}

// The weight of the norms is shared by the heads, which then meet the mean.
TEST(MatchStart, NormsOfQueriesAndKeysTakeTheMean) {
  const auto x = random_rows({4, 16, kDim});
  Attention attention = make_attention(
      AttentionOptions(kDim, kHeads).activation("x^2/sqrt(N)").qk_norm("rms"));
  const auto starts = match(attention, x);
  const double gain = starts[0][0].gain;
  EXPECT_LT(gain, 1);
  EXPECT_SAME(attention->q_norm->weight * attention->k_norm->weight,
              torch::full({kDim / kHeads}, gain, torch::kDouble));
  double sum = 0;
  for (const HeadStart& head : starts[0]) {
    EXPECT_EQ(head.gain, gain);
    sum += std::log(head.after / head.softmax);
  }
  EXPECT_LT(std::abs(sum / kHeads), 0.05);
}

// Each layer sees what the layers before it give after they were matched.
TEST(MatchStart, GoesLayerByLayer) {
  torch::manual_seed(4);
  BlockOptions options(kDim, kHeads);
  options.attention().activation("x^3/sqrt(N)");
  torch::nn::Module model;
  std::vector<Block> blocks;
  for (const char* name : {"a", "b", "c"}) {
    blocks.push_back(model.register_module(name, Block(options)));
  }
  model.to(torch::kDouble);
  const auto x = random_rows({6, 16, kDim});
  const auto forward = [&] {
    torch::Tensor y = x;
    for (Block& block : blocks) y = block->forward(y);
  };
  const auto starts = match_start(model, forward);
  ASSERT_EQ(starts.size(), 3U);
  const auto layers = attention_layers(model);
  for (AttentionBase* layer : layers) layer->watch_norms(true);
  forward();
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_LE(test::relative_error(layers[i]->norms()->weight.mean(0),
                                   member(starts[i], &HeadStart::after)),
              1e-9);
    expect_close(member(starts[i], &HeadStart::after),
                 member(starts[i], &HeadStart::softmax));
  }
}

TEST(MatchStart, RefusesWhatIsNotFinite) {
  Attention attention = make_attention("x^3/sqrt(N)");
  const auto weight = attention->in_proj_weight.clone();
  auto x = random_rows({2, 6, kDim});
  expect_error([&] { match(attention, x, 0); },
               "[match_start] factor 0 is no finite number above 0");
  x[0][0][0] = std::numeric_limits<double>::quiet_NaN();
  expect_error([&] { match(attention, x); },
               "[match_start] layer 0, head 0: the norm of the attention "
               "weights is nan: are inputs and weights finite?");
  EXPECT_TRUE(attention->in_proj_weight.equal(weight));
  // The hook did not stay.
  attention->forward(random_rows({2, 6, kDim}));
  EXPECT_TRUE(attention->in_proj_weight.equal(weight));
}

TEST(RootSearch, FindsRootsBelowZero) {
  const double inf = std::numeric_limits<double>::infinity();
  int calls = 0;
  // A line, a line below zero, a step with an infinite top, a curve that stays
  // above zero, a steep curve.
  const auto f = [&](const std::vector<double>& x) {
    ++calls;
    return std::vector<double>{
        3 * x[0] + 6, x[1] - 1, x[2] > -2 ? inf : x[2] + 3, 1 + std::exp(x[3]),
        std::exp(3 * (x[4] + 5)) - 1 + x[4] / 9 + 5. / 9};
  };
  const auto roots = roots_below_zero(f(std::vector<double>(5, 0.0)), f, 3);
  EXPECT_NEAR(roots[0], -2, 1e-4);
  EXPECT_EQ(roots[1], 0);
  EXPECT_NEAR(roots[2], -3, 1e-4);
  EXPECT_EQ(roots[3], 0);
  EXPECT_NEAR(roots[4], -5, 1e-4);
  EXPECT_LT(calls, 60);
}

}  // namespace match_test
}  // namespace polyattn::nn
