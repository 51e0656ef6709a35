// nn::Attention with decay, and polyattn::attention in C++: against the
// reference of the core, token by token, watched and matched.
#include <gtest/gtest.h>
#include <torch/nn/functional/activation.h>
#include <torch/types.h>

#include <cmath>
#include <string>
#include <vector>

#include "polyattn/nn/attention.h"
#include "polyattn/nn/match.h"
#include "polyattn/reference.h"
#include "torch/parts.h"

namespace polyattn::nn {
namespace {

const std::vector<std::string> kKinds = {"head", "gate"};

Attention make(const std::string& decay,
               const std::string& activation = "x^2/sqrt(N)",
               const std::string& learned = "none", std::int64_t window = 0) {
  torch::manual_seed(1);
  Attention attention(AttentionOptions(12, 4)
                          .kv_heads(2)
                          .activation(activation)
                          .causal(true)
                          .rotary(RotaryOptions())
                          .learned_coefficients(learned)
                          .decay(decay)
                          .window(window));
  const torch::NoGradGuard no_grad;
  if (attention->decay_proj) attention->decay_proj->weight.normal_();
  return attention;
}

torch::Tensor reference(const torch::Tensor& q, const torch::Tensor& k,
                        const torch::Tensor& v, const torch::Tensor& logs) {
  const auto sizes =
      std::vector<std::int64_t>{q.size(0), q.size(1), q.size(2), v.size(3)};
  const torch::Tensor o = torch::empty(sizes, torch::kDouble);
  reference_forward(
      {.q = view_of(q),
       .k = view_of(k),
       .v = view_of(v),
       .log_decay = view_of(logs)},
      {.activation = Activation::parse("x^3/N"), .causal = Causal::kFirst},
      {view_of(o), {}, {}});
  return o;
}

// A number for each key head, gates, gates that an example or all heads share.
TEST(DecayOp, IsThatOfTheCore) {
  torch::manual_seed(2);
  const auto wide = torch::TensorOptions(torch::kDouble);
  const torch::Tensor q = torch::randn({2, 4, 9, 3}, wide);
  const torch::Tensor k = torch::randn({2, 2, 9, 3}, wide);
  const torch::Tensor v = torch::randn({2, 2, 9, 5}, wide);
  for (const std::vector<std::int64_t>& size :
       {std::vector<std::int64_t>{2, 2, 9}, {2, 1}, {1, 9}, {2, 1, 9}}) {
    const torch::Tensor logs = -torch::rand(size, wide);
    torch::Tensor four = logs;
    while (four.dim() < 3) four = four.unsqueeze(0);
    const torch::Tensor o = polyattn::attention(q, k, v,
                                                polyattn::AttentionOptions()
                                                    .activation("x^3/N")
                                                    .causal(true)
                                                    .gqa(true)
                                                    .log_decay(logs));
    EXPECT_TRUE(torch::allclose(o, reference(q, k, v, four.unsqueeze(3))));
  }
}

TEST(AttentionDecay, BeginsAsRetentionAndNearOne) {
  const Attention head = make("head");
  const torch::Tensor factors = (-head->log_decay_rate.exp()).exp();
  EXPECT_NEAR(factors[0].item<double>(), 1 - std::exp2(-5), 1e-6);
  EXPECT_NEAR(factors[1].item<double>(), 1 - std::exp2(-6), 1e-6);
  const Attention gate(
      AttentionOptions(12, 4).activation("x/N").causal(true).decay("gate"));
  const torch::Tensor first =
      (-torch::nn::functional::softplus(gate->decay_proj->bias)).exp();
  EXPECT_TRUE(torch::allclose(first, torch::full({4}, 0.999)));
  EXPECT_EQ(gate->decay_proj->weight.abs().max().item<double>(), 0);
}

void expect_tokens_are_the_whole(Attention& attention, DecodeMode mode) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor x = torch::randn({2, 120, 12});
  const torch::Tensor whole = attention->forward(x);
  DecodeCache cache(mode);
  std::vector<torch::Tensor> rows = {
      attention->forward(x.narrow(1, 0, 70), cache)};
  cache = DecodeCache::load(cache.save());
  for (std::int64_t t = 70; t < 120; ++t)
    rows.push_back(attention->forward(x.narrow(1, t, 1), cache));
  EXPECT_TRUE(torch::allclose(torch::cat(rows, 1), whole, 1e-4, 1e-5));
}

// Token by token, in pieces, from a cache that was saved; with a window of
// softmax beside, too.
TEST(AttentionDecay, TokensAreTheWhole) {
  for (const std::string& kind : kKinds) {
    for (const char* learned : {"none", "head"}) {
      for (const std::int64_t window : {0, 8}) {
        for (const DecodeMode mode :
             {DecodeMode::kAuto, DecodeMode::kCache, DecodeMode::kSums}) {
          SCOPED_TRACE(kind + ' ' + learned + ' ' + std::to_string(window));
          Attention attention = make(kind, "x^2/sqrt(N)", learned, window);
          expect_tokens_are_the_whole(attention, mode);
        }
      }
    }
  }
}

// Softmax in the window does not fade: what the window adds is the same with
// decay and without.
TEST(AttentionDecay, AWindowIsAddedToWhatFades) {
  for (const std::string& kind : kKinds) {
    Attention both = make(kind, "x^2/sqrt(N)", "none", 5);
    Attention faded = make(kind), window = make("none", "softmax", "none", 5);
    const torch::NoGradGuard no_grad;
    both->hybrid_gate.fill_(0.5);
    for (Attention* part : {&faded, &window}) {
      for (const auto& item : (*part)->named_parameters())
        item.value().copy_(both->named_parameters()[item.key()]);
      (*part)->out_proj->bias.zero_();
    }
    both->out_proj->bias.zero_();
    const torch::Tensor x = torch::randn({2, 40, 12});
    EXPECT_TRUE(torch::allclose(both->forward(x),
                                window->forward(x) + 0.5 * faded->forward(x),
                                1e-4, 1e-5))
        << kind;
  }
}

TEST(AttentionDecay, EveryParameterLearns) {
  for (const std::string& kind : kKinds) {
    Attention attention = make(kind);
    attention->forward(torch::randn({2, 20, 12})).square().sum().backward();
    for (const auto& p : attention->named_parameters()) {
      ASSERT_TRUE(p.value().grad().defined()) << p.key();
      EXPECT_TRUE(p.value().grad().isfinite().all().item<bool>()) << p.key();
      if (p.key().find("decay") != std::string::npos) {
        EXPECT_GT(p.value().grad().abs().max().item<double>(), 0) << p.key();
      }
    }
  }
}

// The norms are those of the matrix that is watched too.
TEST(AttentionDecay, NormsAreWatched) {
  for (const std::string& kind : kKinds) {
    Attention attention = make(kind);
    const torch::NoGradGuard no_grad;
    const torch::Tensor x = torch::randn({2, 30, 12});
    const torch::Tensor plain = attention->forward(x);
    attention->watch_norms(true);
    attention->watch_weights(true);
    attention->watch_other("softmax");
    EXPECT_TRUE(torch::allclose(attention->forward(x), plain));
    const torch::Tensor norms =
        attention->weights().square().sum({2, 3}).sqrt();
    EXPECT_TRUE(torch::allclose(attention->norms()->weight,
                                norms.to(torch::kDouble), 1e-4));
    EXPECT_TRUE(attention->other_norms()->weight.isfinite().all().item<bool>());
  }
}

TEST(AttentionDecay, StartsMatched) {
  for (const std::string& kind : kKinds) {
    Attention attention = make(kind, "x^3/sqrt(N)");
    const torch::NoGradGuard no_grad;
    attention->in_proj_weight.mul_(3);
    const torch::Tensor x = torch::randn({3, 64, 12});
    const auto starts = match_start(
        *attention, [&] { attention->forward(x); }, 0.5);
    ASSERT_EQ(starts.size(), 1);
    for (const HeadStart& head : starts[0]) {
      EXPECT_LT(head.gain, 1);
      EXPECT_LT(head.after, head.before);
    }
  }
}

std::string refusal(const AttentionOptions& options) {
  try {
    const Attention attention(options);
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

TEST(AttentionDecay, IsRefusedWhereThereIsNone) {
  const auto base = [] {
    return AttentionOptions(12, 4).activation("x^2/N").causal(true).decay(
        "gate");
  };
  EXPECT_EQ(refusal(base().causal(false)),
            "[Attention] decay gate needs causal(true)");
  EXPECT_EQ(refusal(base().activation("softmax")),
            "[Attention] decay is for polynomials, not for softmax");
  EXPECT_EQ(refusal(base().center_values(true)),
            "[Attention] decay gate together with center_values");
  EXPECT_EQ(refusal(base().dropout(0.5)),
            "[Attention] decay gate together with dropout 0.5 of the attention "
            "weights");
  EXPECT_NE(refusal(base().decay("both")).find("decay"), std::string::npos);
  Attention attention = make("head");
  const torch::NoGradGuard no_grad;
  KvCache cache;
  EXPECT_THROW(attention->forward(torch::randn({1, 2, 12}), cache), c10::Error);
}

}  // namespace
}  // namespace polyattn::nn
