// nn::Attention against plain torch ops, against torch's MultiheadAttention,
// and its learned parts. Norms and errors are in files of their own.
#include "polyattn/nn/attention.h"

#include <torch/nn/init.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/modulelist.h>

#include <cmath>

#include "nn/other_ops.h"
#include "nn/support.h"
#include "torch/eager.h"

namespace polyattn::nn {
namespace attention_test {

using test::expect_gradients;
using test::random_rows;

Attention make(const AttentionOptions& options) {
  Attention attention(options);
  attention->to(torch::kDouble);
  return attention;
}

void copy_state(const torch::nn::Module& from, torch::nn::Module& to) {
  const torch::NoGradGuard no_grad;
  const auto source = from.named_parameters();
  auto target = to.named_parameters();
  ASSERT_EQ(source.keys(), target.keys());
  for (auto& item : target) item.value().copy_(source[item.key()]);
}

// With the op as one would write it in torch ops.
Attention make_eager(const AttentionOptions& options) {
  Attention attention = make(options);
  replace_ops(*attention, {.attention = test::eager_attention, .gelu = {}});
  return attention;
}

// Values and all gradients of the fused op and an eager one.
void expect_fused_is_eager(const AttentionOptions& options) {
  Attention fused = make(options);
  Attention eager = make_eager(options);
  copy_state(*fused, *eager);
  const auto x = random_rows({2, 7, options.dim()}).requires_grad_();
  const auto dy = random_rows({2, 7, options.dim()});
  const auto run = [&](Attention attention) {
    x.mutable_grad() = torch::Tensor();
    const auto y = attention->forward(x);
    y.backward(dy);
    return std::pair{y, x.grad().clone()};
  };
  const auto [y, dx] = run(fused);
  const auto [expected_y, expected_dx] = run(eager);
  EXPECT_SAME(y, expected_y);
  EXPECT_SAME(dx, expected_dx);
  const auto expected = eager->named_parameters();
  for (const auto& item : fused->named_parameters()) {
    SCOPED_TRACE(item.key());
    EXPECT_SAME(item.value().grad(), expected[item.key()].grad());
  }
}

TEST(Attention, FusedIsEager) {
  torch::manual_seed(1);
  for (const char* formula :
       {"softmax", "x^3/sqrt(N)", "x^3/14", "relu^2/N", "1 + x + x^2/2"}) {
    for (const bool causal : {false, true}) {
      SCOPED_TRACE(std::string(formula) + (causal ? " causal" : ""));
      const auto options =
          AttentionOptions(24, 4).activation(formula).causal(causal);
      expect_fused_is_eager(options);
      expect_fused_is_eager(AttentionOptions(options)
                                .kv_heads(2)
                                .head_dim(10)
                                .bias(false)
                                .qk_norm("rms"));
      expect_fused_is_eager(AttentionOptions(options)
                                .kv_heads(1)
                                .rotary(RotaryOptions())
                                .qk_norm("layer")
                                .learned_scale(true));
    }
  }
}

TEST(Attention, IsMultiheadAttention) {
  torch::manual_seed(2);
  torch::nn::MultiheadAttention theirs(
      torch::nn::MultiheadAttentionOptions(24, 4));
  theirs->to(torch::kDouble);
  torch::nn::init::normal_(theirs->in_proj_bias);
  torch::nn::init::normal_(theirs->out_proj->bias);
  Attention ours = make(AttentionOptions(24, 4));
  copy_state(*theirs, *ours);
  const auto x = random_rows({2, 5, 24});
  const auto rows_first = [](const torch::Tensor& t) {
    return t.transpose(0, 1);
  };
  const auto result =
      theirs->forward(rows_first(x), rows_first(x), rows_first(x));
  EXPECT_SAME(ours->forward(x), rows_first(std::get<0>(result)));
}

TEST(Attention, WatchedWeightsAreWhatTheValuesAreMultipliedBy) {
  torch::manual_seed(3);
  for (const char* formula : {"softmax", "x^3/sqrt(N)"}) {
    Attention attention = make(AttentionOptions(24, 4)
                                   .activation(formula)
                                   .kv_heads(2)
                                   .causal(true)
                                   .bias(false));
    const auto x = random_rows({2, 5, 24});
    attention->forward(x);
    EXPECT_FALSE(attention->weights().defined());
    attention->watch_weights(true);
    const auto y = attention->forward(x);
    const auto v = torch::linear(x, attention->in_proj_weight.narrow(0, 36, 12))
                       .unflatten(-1, {2, 6})
                       .transpose(1, 2)
                       .repeat_interleave(2, 1);
    const auto o = torch::matmul(attention->weights(), v);
    EXPECT_SAME(attention->out_proj->forward(o.transpose(1, 2).flatten(2)), y);
    attention->watch_weights(false);
    EXPECT_FALSE(attention->weights().defined());
  }
}

TEST(Attention, MaskedKeysAreAbsent) {
  torch::manual_seed(4);
  for (const char* formula : {"softmax", "x^3/sqrt(N)"}) {
    Attention attention = make(AttentionOptions(24, 4).activation(formula));
    const auto x = random_rows({2, 6, 24});
    const auto mask = torch::arange(6).lt(4).view({1, 1, 1, 6});
    const auto first = x.narrow(1, 0, 4);
    EXPECT_SAME(attention->forward(x, mask).narrow(1, 0, 4),
                attention->forward(first));
  }
}

TEST(Attention, LearnedPartsBeginAsTheFormula) {
  torch::manual_seed(5);
  const auto options = AttentionOptions(24, 4).activation("(1 + x)^2/sqrt(N)");
  Attention plain = make(options);
  const auto x = random_rows({2, 6, 24});
  for (const char* kind : {"shared", "head"}) {
    Attention learned =
        make(AttentionOptions(options).learned_scale(true).learned_coefficients(
            kind));
    {
      const torch::NoGradGuard no_grad;
      for (auto& item : plain->named_parameters()) {
        learned->named_parameters()[item.key()].copy_(item.value());
      }
    }
    // score_scale and coefficients were stored in f32 before to(f64).
    EXPECT_LE(test::relative_error(learned->forward(x), plain->forward(x)),
              1e-6);
    const std::vector<std::int64_t> size = kind == std::string("head")
                                               ? std::vector<std::int64_t>{4, 3}
                                               : std::vector<std::int64_t>{3};
    EXPECT_EQ(learned->coefficients.sizes(), size);
    EXPECT_TRUE(learned->coefficients.view({-1, 3})
                    .eq(torch::tensor({1.0, 2.0, 1.0}))
                    .all()
                    .item<bool>());
  }
}

TEST(Attention, LearnedPartsHaveTheirEffect) {
  torch::manual_seed(6);
  Attention attention = make(AttentionOptions(24, 4)
                                 .activation("x^3/sqrt(N)")
                                 .learned_scale(true)
                                 .learned_coefficients("head"));
  const auto x = random_rows({2, 6, 24});
  const auto before = attention->forward(x) - attention->out_proj->bias;
  const torch::NoGradGuard no_grad;
  attention->score_scale.mul_(2);
  EXPECT_SAME(attention->forward(x) - attention->out_proj->bias, 8 * before);
  attention->coefficients.mul_(0.25);
  EXPECT_SAME(attention->forward(x) - attention->out_proj->bias, 2 * before);
}

TEST(Attention, GradientsReachEveryParameter) {
  torch::manual_seed(7);
  for (const char* norm : {"layer", "rms"}) {
    for (const char* coefficients : {"shared", "head"}) {
      Attention attention = make(AttentionOptions(24, 4)
                                     .activation("(1 + x + x^2)/N")
                                     .kv_heads(2)
                                     .causal(true)
                                     .rotary(RotaryOptions())
                                     .qk_norm(norm)
                                     .learned_scale(true)
                                     .learned_coefficients(coefficients));
      EXPECT_EQ(attention->named_parameters().size(), 8);
      attention->forward(random_rows({2, 6, 24})).square().sum().backward();
      expect_gradients(*attention);
    }
  }
}

TEST(Attention, DropsInTrainingOnly) {
  torch::manual_seed(8);
  const AttentionOptions options(24, 4);
  Attention plain = make(options);
  const auto x = random_rows({2, 6, 24});
  for (const auto& dropping :
       {AttentionOptions(options).dropout(0.5),
        AttentionOptions(options).projection_dropout(0.5)}) {
    Attention attention = make(dropping);
    copy_state(*plain, *attention);
    EXPECT_GT(test::relative_error(attention->forward(x), plain->forward(x)),
              1e-3);
    attention->eval();
    EXPECT_SAME(attention->forward(x), plain->forward(x));
  }
}

TEST(Attention, AcceptsEmptySizes) {
  Attention attention = make(AttentionOptions(24, 4).activation("x^3/N"));
  for (const auto& size : {std::vector<std::int64_t>{0, 5, 24},
                           std::vector<std::int64_t>{2, 0, 24}}) {
    EXPECT_EQ(attention->forward(random_rows(size)).sizes(), size);
  }
}

TEST(Attention, ClonesAreApart) {
  torch::manual_seed(9);
  Attention attention = make(AttentionOptions(24, 4)
                                 .activation("x^3/sqrt(N)")
                                 .rotary(RotaryOptions())
                                 .qk_norm("rms")
                                 .learned_coefficients("shared"));
  const auto x = random_rows({2, 6, 24});
  const auto before = attention->forward(x);
  const auto clone =
      std::dynamic_pointer_cast<AttentionImpl>(attention->clone());
  ASSERT_NE(clone, nullptr);
  EXPECT_SAME(clone->forward(x), before);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : clone->parameters()) parameter.zero_();
  EXPECT_EQ(clone->forward(x).abs().max().item<double>(), 0);
  EXPECT_SAME(attention->forward(x), before);
}

TEST(Attention, FindsTheLayersOfAModule) {
  torch::nn::ModuleList list;
  for (int i = 0; i < 3; ++i)
    list->push_back(Attention(AttentionOptions(8, 2)));
  const auto layers = attention_layers(*list);
  ASSERT_EQ(layers.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(layers[i], &list->at<AttentionImpl>(i));
  }
  EXPECT_EQ(attention_layers(list->at<AttentionImpl>(1)).size(), 1U);
}

}  // namespace attention_test
}  // namespace polyattn::nn
