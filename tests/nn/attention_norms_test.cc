// The norms that nn::Attention watches, against those of an explicit matrix;
// and every way in which options and calls are refused.
#include <cmath>

#include "nn/support.h"
#include "polyattn/nn/attention.h"

namespace polyattn::nn {
namespace attention_norms_test {

using test::expect_error;
using test::random_rows;

// Scores [B, H, N, N] of a module without anything between projection and
// attention.
torch::Tensor scores_of(AttentionImpl& attention, const torch::Tensor& x) {
  const std::int64_t h = attention.options.heads();
  const std::int64_t d = attention.head_dim();
  const auto rows =
      torch::linear(x, attention.in_proj_weight, attention.in_proj_bias)
          .view({x.size(0), x.size(1), 3, h, d})
          .permute({2, 0, 3, 1, 4});
  return torch::matmul(rows[0], rows[1].transpose(-2, -1)) /
         std::sqrt(static_cast<double>(d));
}

torch::Tensor frobenius(const torch::Tensor& t) {
  return t.square().flatten(2).sum(-1).sqrt();
}

TEST(AttentionNorms, OfAPower) {
  torch::manual_seed(1);
  Attention attention(AttentionOptions(24, 3).activation("x^3/sqrt(N)"));
  attention->to(torch::kDouble);
  attention->watch_norms(true);
  const auto x = random_rows({2, 7, 24});
  const auto y = attention->forward(x);
  ASSERT_TRUE(attention->norms());
  const AttentionNorms& norms = *attention->norms();
  const auto s = scores_of(*attention, x);
  const double root = std::sqrt(7.0);
  EXPECT_EQ(norms.weight.sizes(), (std::vector<std::int64_t>{2, 3}));
  EXPECT_SAME(norms.weight, frobenius(s.pow(3) / root));
  EXPECT_SAME(norms.jacobian, frobenius(3 * s.square() / root));
  EXPECT_SAME(norms.max_abs_score, s.abs().amax({-2, -1}));
  EXPECT_EQ(norms.non_finite.sum().item<std::int64_t>(), 0);
  EXPECT_EQ(norms.non_finite.sizes(), (std::vector<std::int64_t>{2, 3}));
  attention->watch_norms(false);
  EXPECT_FALSE(attention->norms());
  EXPECT_SAME(attention->forward(x), y);
  EXPECT_FALSE(attention->norms());
}

// Of row i of softmax, dA_ij/dS_ik = a_ij (delta_jk - a_ik).
TEST(AttentionNorms, OfCausalSoftmax) {
  torch::manual_seed(2);
  Attention attention(AttentionOptions(24, 3).causal(true));
  attention->to(torch::kDouble);
  attention->watch_norms(true);
  const auto x = random_rows({2, 7, 24});
  attention->forward(x);
  ASSERT_TRUE(attention->norms());
  const auto s = scores_of(*attention, x);
  const auto seen = torch::ones({7, 7}, torch::kBool).tril();
  const auto a = torch::softmax(s.masked_fill(~seen, -INFINITY), -1);
  const auto jacobian =
      torch::diag_embed(a) - a.unsqueeze(-1) * a.unsqueeze(-2);
  EXPECT_SAME(attention->norms()->weight, frobenius(a));
  EXPECT_SAME(attention->norms()->jacobian, frobenius(jacobian));
  EXPECT_SAME(attention->norms()->max_abs_score,
              s.masked_fill(~seen, 0).abs().amax({-2, -1}));
}

TEST(AttentionNorms, PassGradientsOn) {
  torch::manual_seed(3);
  Attention attention(AttentionOptions(24, 3).activation("x^3/sqrt(N)"));
  attention->to(torch::kDouble);
  const auto x = random_rows({2, 7, 24});
  const auto gradient = [&](bool watched) {
    attention->zero_grad();
    attention->watch_norms(watched);
    attention->forward(x).square().sum().backward();
    return attention->in_proj_weight.grad().clone();
  };
  const auto plain = gradient(false);
  EXPECT_SAME(gradient(true), plain);
}

TEST(AttentionErrors, Options) {
  const auto refuse = [](const AttentionOptions& options,
                         const std::string& message) {
    expect_error([&] { const Attention a(options); }, "[Attention] " + message);
  };
  using O = AttentionOptions;
  refuse(O(0, 1), "dim 0 < 1");
  refuse(O(8, 0), "heads 0 < 1");
  refuse(O(8, 2).kv_heads(0), "kv_heads 0 < 1");
  refuse(O(8, 4).kv_heads(3), "heads 4 is not a multiple of kv_heads 3");
  refuse(O(10, 4), "dim 10 is not a multiple of heads 4; give head_dim then");
  refuse(O(8, 2).head_dim(-1), "head_dim -1 < 1");
  refuse(O(8, 2).dropout(1), "dropout 1 is not in [0, 1)");
  refuse(O(8, 2).projection_dropout(-0.5),
         "projection_dropout -0.5 is not in [0, 1)");
  refuse(O(8, 2).qk_norm("batch"),
         "qk_norm \"batch\" is none of none, layer, rms");
  refuse(O(8, 2).short_conv(-1), "short_conv -1 < 0");
  refuse(O(8, 2).short_conv(4).grid(Grid{2, 2}),
         "short_conv 4 is neither 0 nor 3, the side of the window on a grid");
  refuse(O(8, 2).short_conv(3).grid(Grid{2, 2}).causal(true),
         "a short_conv on a grid is not causal");
  refuse(O(8, 2).output_norm("layer"),
         "output_norm \"layer\" is none of none, rms");
  refuse(O(8, 2).learned_coefficients("all"),
         "learned_coefficients \"all\" is none of none, shared, head");
  refuse(O(8, 2).learned_coefficients("head"),
         "learned_coefficients are for polynomials, not for softmax");
  try {
    const Attention a(O(8, 2).activation("x^"));
    ADD_FAILURE();
  } catch (const c10::Error& error) {
    EXPECT_EQ(std::string(error.what_without_backtrace())
                  .rfind("[Attention] bad activation: ", 0),
              0U);
  }
}

TEST(AttentionErrors, Rotary) {
  const auto refuse = [](const RotaryOptions& rotary,
                         const std::string& message) {
    expect_error(
        [&] { const Attention a(AttentionOptions(8, 2).rotary(rotary)); },
        "[Rotary] " + message);
  };
  refuse(RotaryOptions().base(1), "base 1 is not above 1");
  refuse(RotaryOptions().fraction(0), "fraction 0 is not in (0, 1]");
  refuse(RotaryOptions().fraction(1.5), "fraction 1.5 is not in (0, 1]");
  refuse(RotaryOptions().fraction(0.4),
         "fraction 0.4 of head_dim 4 leaves no pair to turn");
}

TEST(AttentionErrors, Calls) {
  const auto x = torch::randn({2, 3, 8});
  Attention plain(AttentionOptions(8, 2));
  KvCache cache;
  expect_error(
      [&] {
        plain->forward(torch::randn({2, 3, 7}));
      },
      "[Attention] x of size [2, 3, 7] is not [B, N, 8]");
  expect_error(
      [&] {
        plain->forward(torch::randn({3, 8}));
      },
      "[Attention] x of size [3, 8] is not [B, N, 8]");
  expect_error([&] { plain->forward(x, cache); },
               "[Attention] a cache needs causal(true)");
}

}  // namespace attention_norms_test
}  // namespace polyattn::nn
