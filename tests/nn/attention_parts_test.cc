// The optional parts of nn::Attention, alone and together, against the plain
// definition in explicit matrices: values, first and second derivatives, masks,
// and decoding with either cache.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <string>

#include "nn/plain_conv.h"
#include "nn/support.h"
#include "polyattn/nn/attention.h"
#include "support/message_of.h"

namespace polyattn::nn {
namespace attention_parts_test {

using test::random_rows;

// No parameter is at its neutral value.
Attention make(const AttentionOptions& options) {
  Attention attention(options);
  attention->to(torch::kDouble);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : attention->parameters()) parameter.normal_(0.2, 0.4);
  return attention;
}

// [B, N, heads * D] -> [B, H, N, D], each head of keys repeated for its group.
torch::Tensor heads_of(AttentionImpl& a, const torch::Tensor& rows) {
  const std::int64_t heads = rows.size(-1) / a.head_dim();
  return rows.unflatten(-1, {heads, a.head_dim()})
      .transpose(1, 2)
      .repeat_interleave(a.options.heads() / heads, 1);
}

// Of each matrix: [B, H, 1, 1].
torch::Tensor frobenius(const torch::Tensor& weights) {
  return weights.square().sum({2, 3}, true).sqrt();
}

torch::Tensor target_norm(AttentionImpl& a, const torch::Tensor& scores,
                          const torch::Tensor& visible) {
  const auto hidden = visible.expand_as(scores).logical_not();
  const auto exp = scores.exp().masked_fill(hidden, 0);
  const auto sums = exp.sum(-1, true);
  return a.options.norm_factor() *
         frobenius(exp / sums.masked_fill(sums.eq(0), 1));
}

// x^3/sqrt(N) with every matrix written out; visible: bool [B, H, N, N].
torch::Tensor plain(AttentionImpl& a, const torch::Tensor& x,
                    const torch::Tensor& visible) {
  const std::int64_t q_width = a.options.heads() * a.head_dim();
  const std::int64_t k_width = a.kv_heads() * a.head_dim();
  auto rows = torch::linear(x, a.in_proj_weight, a.in_proj_bias);
  const auto convolve = [&](torch::Tensor& t) {
    t = test::plain_conv(t, a.short_conv->weight, a.options.grid());
  };
  if (a.short_conv && !a.options.grid()) convolve(rows);
  auto parts = rows.split_with_sizes({q_width, k_width, k_width}, -1);
  if (a.short_conv && a.options.grid()) convolve(parts[2]);
  const auto q = heads_of(a, parts[0]), k = heads_of(a, parts[1]);
  const auto v = heads_of(a, parts[2]);
  const auto scores = torch::matmul(q, k.transpose(-2, -1)) /
                      std::sqrt(static_cast<double>(a.head_dim()));
  const auto seen = visible.to(torch::kDouble);
  const auto count = seen.sum(-1, true).clamp_min(1);
  auto weights = scores.pow(3) / count.sqrt() * seen;
  if (a.options.norm_clamp() == "rescale") {
    weights = weights * target_norm(a, scores, visible) / frobenius(weights);
  }
  auto o = torch::matmul(weights, v);
  if (a.options.center_values()) {
    const auto mean = (torch::matmul(seen, v) / count).unsqueeze(-2);
    o = (weights.unsqueeze(-1) * (v.unsqueeze(-3) - mean)).sum(-2) +
        mean.squeeze(-2);
  }
  o = o.transpose(1, 2);
  if (a.output_norm) {
    o = o / (o.square().mean(-1, true) + 1e-6).sqrt() * a.output_norm->weight;
  }
  o = o.flatten(2);
  if (a.gate_proj) o = o / (1 + (-a.gate_proj->forward(x)).exp());
  return a.out_proj->forward(o);
}

AttentionOptions small(bool causal) {
  return AttentionOptions(12, 4)
      .activation("x^3/sqrt(N)")
      .kv_heads(2)
      .causal(causal);
}

struct Case {
  const char* name;
  AttentionOptions options;
};

std::vector<Case> cases(bool causal) {
  const AttentionOptions o = small(causal);
  using O = AttentionOptions;
  return {
      {"output_norm", O(o).output_norm("rms")},
      {"output_gate", O(o).output_gate(true).bias(false)},
      {"center_values", O(o).center_values(true)},
      {"short_conv", O(o).short_conv(4)},
      {"all",
       O(o).output_norm("rms").output_gate(true).center_values(true).short_conv(
           3)}};
}

torch::Tensor lower(std::int64_t n, bool causal) {
  const auto all = torch::ones({1, 1, n, n}, torch::kBool);
  return causal ? all.tril() : all;
}

// Of y^2, by x and all parameters; then of the length of that gradient.
std::vector<torch::Tensor> derivatives(AttentionImpl& a, const torch::Tensor& x,
                                       const torch::Tensor& y) {
  std::vector<torch::Tensor> inputs = a.parameters();
  inputs.push_back(x);
  auto first =
      torch::autograd::grad({y.square().sum()}, inputs, {}, true, true);
  torch::Tensor length = torch::zeros({}, y.options());
  for (const torch::Tensor& g : first) length = length + g.square().sum();
  const auto second = torch::autograd::grad({length}, inputs);
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

void expect_definition(AttentionImpl& a, const torch::Tensor& x,
                       const torch::Tensor& mask,
                       const torch::Tensor& visible) {
  const auto y = a.forward(x, mask), expected = plain(a, x, visible);
  EXPECT_SAME(y, expected);
  // Without create_graph gradients go another way.
  a.zero_grad();
  x.mutable_grad() = torch::Tensor();
  a.forward(x, mask).square().sum().backward();
  const auto actual = derivatives(a, x, y),
             wanted = derivatives(a, x, expected);
  const auto names = a.named_parameters().keys();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    SCOPED_TRACE("derivative " + std::to_string(i));
    EXPECT_SAME(actual[i], wanted[i]);
    if (i > names.size()) continue;
    EXPECT_SAME((i < names.size() ? a.parameters()[i] : x).grad(), wanted[i]);
  }
}

TEST(AttentionParts, AreTheirDefinition) {
  torch::manual_seed(1);
  for (const bool causal : {false, true}) {
    for (const Case& c : cases(causal)) {
      SCOPED_TRACE(std::string(c.name) + (causal ? " causal" : ""));
      Attention attention = make(c.options);
      expect_definition(*attention, random_rows({2, 7, 12}).requires_grad_(),
                        {}, lower(7, causal));
    }
  }
  Attention attention = make(small(false).short_conv(3).grid(Grid{2, 3}));
  EXPECT_EQ(attention->short_conv->weight.sizes(),
            (std::vector<std::int64_t>{6, 1, 3, 3}));
  expect_definition(*attention, random_rows({2, 7, 12}).requires_grad_(), {},
                    lower(7, false));
}

// Masks for 2 sequences, 4 heads and 6 rows: by key, by head and key, by row
// and key, with a row that sees nothing, and numbers that are added.
std::vector<torch::Tensor> masks() {
  const auto random = [](torch::IntArrayRef size) {
    return torch::rand(size).gt(0.4).index_put_({"...", 0}, true);
  };
  const auto rows = random({2, 1, 6, 6}).index_put_({0, 0, 3}, false);
  return {random({2, 1, 1, 6}),
          random({2, 4, 1, 6}),
          rows,
          random({2, 4, 6, 6}),
          random({6, 6}),
          torch::zeros({2, 1, 1, 6}, torch::kDouble)
              .masked_fill(random({2, 1, 1, 6}), -INFINITY)};
}

TEST(AttentionParts, ValuesAreCentredOverWhatIsSeen) {
  torch::manual_seed(5);
  for (const bool causal : {false, true}) {
    for (const torch::Tensor& mask : masks()) {
      SCOPED_TRACE(c10::str(mask.sizes(), causal ? " causal" : ""));
      const auto seen =
          mask.scalar_type() == torch::kBool ? mask : mask.ne(-INFINITY);
      Attention attention = make(small(causal).center_values(true));
      expect_definition(*attention, random_rows({2, 6, 12}).requires_grad_(),
                        mask, seen.logical_and(lower(6, causal)));
    }
  }
}

TEST(AttentionParts, ClampedNormsAreTheirDefinition) {
  torch::manual_seed(7);
  for (const bool centered : {false, true}) {
    Attention attention =
        make(small(false).norm_clamp("rescale").norm_factor(0.3).center_values(
            centered));
    expect_definition(*attention, random_rows({2, 7, 12}).requires_grad_(), {},
                      lower(7, false));
    for (const torch::Tensor& mask : masks()) {
      SCOPED_TRACE(c10::str(mask.sizes(), centered ? " centred" : ""));
      const auto seen =
          mask.scalar_type() == torch::kBool ? mask : mask.ne(-INFINITY);
      expect_definition(*attention, random_rows({2, 6, 12}).requires_grad_(),
                        mask, seen.logical_and(lower(6, false)));
    }
  }
}

TEST(AttentionParts, ClampedNormsAreThoseThatAreWatched) {
  torch::manual_seed(8);
  for (const char* formula : {"softmax", "x^3/sqrt(N)", "sigmoid", "relu/N"}) {
    SCOPED_TRACE(formula);
    Attention attention = make(small(false).activation(formula));
    attention->watch_other("softmax");
    attention->watch_norms(true);
    attention->watch_weights(true);
    const auto x = random_rows({2, 7, 12});
    attention->forward(x);
    const auto jacobian = attention->norms()->jacobian;
    const auto gain =
        3 * attention->other_norms()->weight / attention->norms()->weight;
    attention->options.norm_clamp("rescale").norm_factor(3);
    attention->forward(x);
    EXPECT_SAME(attention->norms()->weight,
                3 * attention->other_norms()->weight);
    EXPECT_SAME(attention->norms()->weight,
                frobenius(attention->weights()).flatten(1));
    EXPECT_SAME(attention->norms()->jacobian, jacobian * gain);
  }
}

TEST(AttentionParts, PenaltyIsTheSquareOfTheLogarithm) {
  torch::manual_seed(9);
  Attention attention = make(small(false).norm_clamp("penalty").norm_factor(2));
  const auto x = random_rows({2, 7, 12}).requires_grad_();
  Attention free = make(small(false));
  {
    const torch::NoGradGuard no_grad;
    for (auto& parameter : free->named_parameters())
      parameter.value().copy_(attention->named_parameters()[parameter.key()]);
  }
  EXPECT_SAME(attention->forward(x), free->forward(x));
  const auto parts = torch::linear(x, free->in_proj_weight, free->in_proj_bias)
                         .split_with_sizes({12, 6, 6}, -1);
  const auto scores = torch::matmul(heads_of(*free, parts[0]),
                                    heads_of(*free, parts[1]).transpose(2, 3)) /
                      std::sqrt(3.0);
  const auto own = frobenius(scores.pow(3) / std::sqrt(7.0));
  const auto expected = (own / target_norm(*attention, scores, lower(7, false)))
                            .log()
                            .square()
                            .mean();
  EXPECT_SAME(attention->norm_penalty(), expected);
  const auto by = [&](const torch::Tensor& y, const torch::Tensor& p) {
    return torch::autograd::grad({y}, {p, x}, {}, true);
  };
  const auto actual = by(attention->norm_penalty(), attention->in_proj_weight);
  const auto wanted = by(expected, free->in_proj_weight);
  EXPECT_SAME(actual[0], wanted[0]);
  EXPECT_SAME(actual[1], wanted[1]);
  attention->eval();
  attention->forward(x);
  EXPECT_FALSE(attention->norm_penalty().defined());
}

TEST(AttentionParts, WeightsOfZeroAreNotClamped) {
  for (const char* clamp : {"rescale", "penalty"}) {
    Attention attention = make(small(false).norm_clamp(clamp).bias(false));
    const auto x = torch::zeros({1, 5, 12}, torch::kDouble).requires_grad_();
    auto loss = attention->forward(x).sum();
    if (attention->norm_penalty().defined())
      loss = loss + attention->norm_penalty();
    loss.backward();
    EXPECT_EQ(loss.item<double>(), 0);
    EXPECT_TRUE(
        torch::isfinite(attention->in_proj_weight.grad()).all().item<bool>());
    EXPECT_TRUE(torch::isfinite(x.grad()).all().item<bool>());
  }
}

TEST(AttentionParts, ClampsThatMakeNoSenseAreRefused) {
  const auto refusal = [](const AttentionOptions& options) {
    return test::message_of<c10::Error>([&] { Attention{options}; });
  };
  const auto expect_refusal = [&](const AttentionOptions& options,
                                  const char* message) {
    const std::string text = refusal(options);
    EXPECT_NE(text.find(message), std::string::npos) << text;
  };
  expect_refusal(small(false).norm_clamp("hold"),
                 "norm_clamp \"hold\" is none of none, rescale, penalty");
  expect_refusal(small(false).norm_factor(0),
                 "norm_factor 0 is no finite number above 0");
  expect_refusal(small(true).norm_clamp("rescale"),
                 "norm_clamp rescale is not causal");
}

// Where f32 has loops of its own. The derivatives are sums of some hundred
// terms of several factors each: 2^-24 times some thousands.
TEST(AttentionParts, AreTheSameInF32) {
  torch::manual_seed(6);
  for (const bool causal : {false, true}) {
    for (const Case& c : cases(causal)) {
      SCOPED_TRACE(std::string(c.name) + (causal ? " causal" : ""));
      Attention wide = make(c.options);
      const auto narrow =
          std::dynamic_pointer_cast<AttentionImpl>(wide->clone());
      narrow->to(torch::kFloat);
      const auto x = torch::randn({2, 40, 12}).requires_grad_();
      const auto wide_x = x.detach().to(torch::kDouble).requires_grad_();
      const auto expected =
          derivatives(*wide, wide_x, wide->forward(wide_x) / 100);
      const auto actual = derivatives(*narrow, x, narrow->forward(x) / 100);
      (narrow->forward(x) / 100).square().sum().backward();
      const auto parameters = narrow->parameters();
      for (std::size_t i = 0; i < expected.size(); ++i) {
        SCOPED_TRACE("derivative " + std::to_string(i));
        EXPECT_LE(test::relative_error(actual[i], expected[i]), 2e-4);
        if (i > parameters.size()) continue;
        const auto& input = i < parameters.size() ? parameters[i] : x;
        EXPECT_LE(test::relative_error(input.grad(), expected[i]), 2e-4);
      }
    }
  }
}

template <typename Cache>
torch::Tensor in_steps(AttentionImpl& a, const torch::Tensor& x, Cache cache,
                       std::int64_t step) {
  std::vector<torch::Tensor> rows;
  for (std::int64_t first = 0; first < x.size(1); first += step) {
    const std::int64_t n = std::min(step, x.size(1) - first);
    rows.push_back(a.forward(x.narrow(1, first, n), cache));
    EXPECT_EQ(cache.length(), first + n);
  }
  return torch::cat(rows, 1);
}

TEST(AttentionParts, StepsAreTheWholeSequence) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(2);
  for (const Case& c : cases(true)) {
    SCOPED_TRACE(c.name);
    Attention attention = make(c.options);
    const auto x = random_rows({2, 110, 12});
    const auto whole = plain(*attention, x, lower(110, true));
    for (const std::int64_t step : {1, 2, 49, 110}) {
      EXPECT_SAME(in_steps(*attention, x, KvCache(), step), whole);
      for (const DecodeMode mode : {DecodeMode::kCache, DecodeMode::kSums})
        EXPECT_SAME(in_steps(*attention, x, DecodeCache(mode), step), whole);
    }
  }
}

TEST(AttentionParts, CloneAndNormsAreThoseOfTheWeights) {
  torch::manual_seed(3);
  for (const Case& c : cases(true)) {
    SCOPED_TRACE(c.name);
    Attention attention = make(c.options);
    const auto clone =
        std::dynamic_pointer_cast<AttentionImpl>(attention->clone());
    const auto x = random_rows({2, 7, 12});
    EXPECT_SAME(clone->forward(x), attention->forward(x));
    attention->watch_norms(true);
    attention->watch_weights(true);
    EXPECT_SAME(attention->forward(x), clone->forward(x));
    EXPECT_SAME(attention->norms()->weight,
                attention->weights().square().sum({2, 3}).sqrt());
    EXPECT_EQ(attention->weights().sizes(),
              (std::vector<std::int64_t>{2, 4, 7, 7}));
  }
}

// bf16 has eight bits, and a few roundings add up.
TEST(AttentionParts, RunInLowerPrecision) {
  torch::manual_seed(4);
  for (const Case& c : cases(true)) {
    SCOPED_TRACE(c.name);
    Attention attention = make(c.options);
    attention->to(torch::kFloat);
    const auto x = torch::randn({2, 7, 12});
    const auto wide = attention->forward(x);
    attention->to(torch::kBFloat16);
    const auto y = attention->forward(x.to(torch::kBFloat16));
    EXPECT_EQ(y.scalar_type(), torch::kBFloat16);
    EXPECT_LE(test::relative_error(y, wide), 0.05);
  }
}

}  // namespace attention_parts_test
}  // namespace polyattn::nn
