// nn::Attention in a sliding window, alone with softmax and beside another
// activation, against the plain definition in explicit matrices; token by
// token; and what it refuses.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <string>
#include <vector>

#include "nn/support.h"
#include "polyattn/nn/attention.h"
#include "polyattn/nn/initialise.h"
#include "polyattn/nn/match.h"

namespace polyattn::nn {
namespace attention_window_test {

using test::expect_error;
using test::random_rows;

constexpr std::int64_t kN = 23, kDim = 12;
constexpr char kCube[] = "x^3/sqrt(N)";

AttentionOptions small(const std::string& formula, bool causal,
                       std::int64_t window) {
  return AttentionOptions(kDim, 4)
      .activation(formula)
      .kv_heads(2)
      .causal(causal)
      .window(window);
}

// No parameter is at its first value.
Attention make(const AttentionOptions& options) {
  Attention attention(options);
  attention->to(torch::kDouble);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : attention->parameters()) parameter.normal_(0.2, 0.4);
  return attention;
}

// Row i sees row j, in the words of the option.
torch::Tensor near_rows(std::int64_t n, bool causal, std::int64_t window) {
  const auto ahead =
      torch::arange(n).view({1, n}) - torch::arange(n).view({n, 1});
  return causal ? ahead.le(0).logical_and(ahead.gt(-window))
                : ahead.abs().le(window);
}

torch::Tensor all_rows(std::int64_t n, bool causal) {
  const auto all = torch::ones({n, n}, torch::kBool);
  return causal ? all.tril() : all;
}

torch::Tensor softmax(const torch::Tensor& s, const torch::Tensor& seen) {
  const auto w = (s - s.amax(-1, true)).exp() * seen;
  const auto sums = w.sum(-1, true);
  return w / sums.masked_fill(sums.eq(0), 1);
}

// Every matrix written out. `mask` [.., .., 1 or N, N] hides keys of all parts.
torch::Tensor plain(AttentionImpl& a, const torch::Tensor& x,
                    const torch::Tensor& mask) {
  const std::int64_t d = a.head_dim(), h = a.options.heads(), g = a.kv_heads();
  const auto rows = torch::linear(x, a.in_proj_weight, a.in_proj_bias)
                        .unflatten(-1, {h + 2 * g, d})
                        .transpose(1, 2);
  const auto wide = [&](std::int64_t first) {
    return rows.narrow(1, first, g).repeat_interleave(h / g, 1);
  };
  const auto v = wide(h + g);
  const auto s =
      torch::matmul(rows.narrow(1, 0, h), wide(h).transpose(-2, -1)) /
      std::sqrt(static_cast<double>(d));
  const bool causal = a.options.causal();
  const std::int64_t n = x.size(1);
  const auto near = near_rows(n, causal, a.options.window()).logical_and(mask);
  auto o = torch::matmul(softmax(s, near.to(torch::kDouble)), v);
  if (a.hybrid_gate.defined()) {
    const auto seen = all_rows(n, causal).logical_and(mask).to(torch::kDouble);
    const auto count = seen.sum(-1, true).clamp_min(1);
    const auto weights = s.pow(3) / count.sqrt() * seen;
    auto rest = torch::matmul(weights, v);
    if (a.options.center_values()) {
      const auto mean = torch::matmul(seen, v) / count;
      rest = rest + (1 - weights.sum(-1, true)) * mean;
    }
    o = o + a.hybrid_gate.view({-1, 1, 1}) * rest;
  }
  o = o.transpose(1, 2);
  if (a.output_norm) {
    o = o / (o.square().mean(-1, true) + 1e-6).sqrt() * a.output_norm->weight;
  }
  o = o.flatten(2);
  if (a.gate_proj) o = o * torch::sigmoid(a.gate_proj->forward(x));
  return a.out_proj->forward(o);
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

std::vector<AttentionOptions> cases(bool causal) {
  return {small("softmax", causal, 5),
          small("softmax", causal, 1).output_norm("rms").center_values(true),
          small(kCube, causal, 5), small(kCube, causal, 30),
          small(kCube, causal, 3)
              .center_values(true)
              .output_norm("rms")
              .output_gate(true)};
}

TEST(AttentionWindow, IsItsDefinition) {
  torch::manual_seed(1);
  const auto x = random_rows({2, kN, kDim}).requires_grad_();
  // The second text is shorter: padding is hidden.
  auto padding = torch::ones({2, 1, 1, kN}, torch::kBool);
  padding[1].narrow(-1, 15, 8).fill_(false);
  const auto everything = torch::ones({1, 1, 1, kN}, torch::kBool);
  for (const bool causal : {false, true}) {
    for (const AttentionOptions& options : cases(causal)) {
      for (const bool padded : {false, true}) {
        SCOPED_TRACE(options.activation() + ' ' +
                     std::to_string(options.window()) +
                     (causal ? " causal" : "") + (padded ? " padded" : ""));
        Attention a = make(options);
        const auto y = a->forward(x, padded ? padding : torch::Tensor());
        const auto expected = plain(*a, x, padded ? padding : everything);
        EXPECT_SAME(y, expected);
        const auto got = derivatives(*a, x, y);
        const auto want = derivatives(*a, x, expected);
        // The second derivatives have more to add up.
        for (std::size_t i = 0; i < got.size(); ++i)
          EXPECT_LE(test::relative_error(got[i], want[i]), 1e-9) << i;
      }
    }
  }
}

TEST(AttentionWindow, AsLongAsTheRowsItHidesNothing) {
  torch::manual_seed(2);
  const auto x = random_rows({1, kN, kDim});
  for (const bool causal : {false, true}) {
    Attention whole(small("softmax", causal, 0));
    Attention window(small("softmax", causal, kN));
    whole->to(torch::kDouble);
    window->to(torch::kDouble);
    const torch::NoGradGuard no_grad;
    for (const auto& item : whole->named_parameters())
      window->named_parameters()[item.key()].copy_(item.value());
    EXPECT_TRUE(window->forward(x).equal(whole->forward(x)));
  }
}

TEST(AttentionWindow, LearnsAGateForEachHead) {
  torch::manual_seed(3);
  Attention hybrid(small(kCube, true, 4)), local(small("softmax", true, 4));
  EXPECT_TRUE(
      hybrid->named_parameters()["hybrid_gate"].equal(torch::ones({4})));
  EXPECT_FALSE(local->named_parameters().contains("hybrid_gate"));
  hybrid->forward(torch::randn({2, kN, kDim})).square().sum().backward();
  test::expect_gradients(*hybrid);
  {
    const torch::NoGradGuard no_grad;
    hybrid->hybrid_gate.fill_(7);
  }
  initialise(*hybrid, InitialiseOptions("vit"));
  EXPECT_TRUE(hybrid->hybrid_gate.equal(torch::ones({4})));
}

// What is watched is the activation's matrix over all rows, and so is what the
// matched start brings to the norm of softmax; softmax in a window is watched
// as it is.
TEST(AttentionWindow, WatchesAndMatchesTheActivation) {
  torch::manual_seed(4);
  const auto x = random_rows({2, kN, kDim});
  Attention hybrid = make(small(kCube, false, 3));
  Attention rest = make(small(kCube, false, 0));
  {
    const torch::NoGradGuard no_grad;
    for (const auto& item : rest->named_parameters())
      item.value().copy_(hybrid->named_parameters()[item.key()]);
  }
  for (Attention* a : {&hybrid, &rest}) {
    (*a)->watch_norms(true);
    (*a)->forward(x);
  }
  EXPECT_SAME(hybrid->norms()->weight, rest->norms()->weight);
  const auto run = [&](Attention& a) {
    return match_start(*a, [&] { a->forward(x); });
  };
  const auto got = run(hybrid).front(), want = run(rest).front();
  for (std::size_t h = 0; h < want.size(); ++h)
    EXPECT_EQ(got[h].gain, want[h].gain);
  EXPECT_TRUE(hybrid->in_proj_weight.equal(rest->in_proj_weight));

  Attention local = make(small("softmax", false, 0));
  local->watch_norms(true);
  local->forward(x);
  const auto before = local->norms()->weight;
  Attention near = make(small("softmax", false, 1));
  near->watch_norms(true);
  near->forward(x);
  // Three keys a row at most: the norm of a row is at least 1/sqrt(3).
  EXPECT_TRUE(near->norms()->weight.ge(std::sqrt(kN / 3.0)).all().item<bool>());
}

AttentionOptions decoder(const std::string& formula, std::int64_t window) {
  return small(formula, true, window)
      .rotary(RotaryOptions().base(100))
      .short_conv(3);
}

template <typename Cache>
torch::Tensor in_steps(AttentionImpl& a, const torch::Tensor& x,
                       std::int64_t step, Cache cache) {
  std::vector<torch::Tensor> rows;
  for (std::int64_t first = 0; first < x.size(1); first += step) {
    const std::int64_t n = std::min(step, x.size(1) - first);
    rows.push_back(a.forward(x.narrow(1, first, n), cache));
    EXPECT_EQ(cache.length(), first + n);
  }
  return torch::cat(rows, 1);
}

TEST(AttentionWindow, TokenByTokenIsTheWhole) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(5);
  const auto x = random_rows({2, 70, kDim});
  for (const char* formula : {"softmax", kCube, "relu^2/N"}) {
    for (const std::int64_t window : {1, 4, 69, 200}) {
      SCOPED_TRACE(std::string(formula) + ' ' + std::to_string(window));
      Attention a = make(decoder(formula, window));
      const auto whole = a->forward(x);
      for (const std::int64_t step : {1, 3, 32, 70}) {
        EXPECT_SAME(in_steps(*a, x, step, KvCache()), whole);
        EXPECT_SAME(in_steps(*a, x, step, DecodeCache()), whole);
        if (formula == kCube) {
          EXPECT_SAME(in_steps(*a, x, step, DecodeCache(DecodeMode::kSums)),
                      whole);
        }
      }
    }
  }
}

// Keys and values of window - 1 rows, whatever the text.
TEST(AttentionWindow, MemoryDoesNotGrow) {
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({1, 64, kDim});
  Attention local(small("softmax", true, 16)), hybrid(small("x^2", true, 16));
  KvCache rows;
  DecodeCache ring, sums(DecodeMode::kSums);
  local->forward(x, rows);
  local->forward(x, ring);
  hybrid->forward(x, sums);
  const std::size_t kept = 15 * 2 * (2 * 3) * sizeof(float);
  EXPECT_EQ(rows.bytes(), kept);
  EXPECT_EQ(ring.bytes(), kept);
  const std::size_t constant = sums.bytes();
  for (int i = 0; i < 30; ++i) {
    local->forward(x, rows);
    local->forward(x.narrow(1, 0, 1 + i % 5), ring);
    hybrid->forward(x, sums);
    EXPECT_EQ(rows.bytes(), kept);
    EXPECT_EQ(ring.bytes(), kept);
    EXPECT_EQ(sums.bytes(), constant);
  }
  EXPECT_EQ(rows.length(), 31 * 64);
  EXPECT_EQ(rows.capacity(), 15);
}

TEST(AttentionWindow, CachesForkReorderAndAreSaved) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(6);
  const auto x = random_rows({3, 40, kDim}), next = random_rows({2, 1, kDim});
  const auto index = torch::tensor({2, 0}, torch::kLong);
  for (const char* formula : {"softmax", kCube}) {
    Attention a = make(decoder(formula, 6));
    DecodeCache cache;
    a->forward(x, cache);
    DecodeCache chosen = cache;
    chosen.reorder(index);
    DecodeCache fresh;
    a->forward(x.index_select(0, index), fresh);
    DecodeCache loaded = DecodeCache::load(chosen.save());
    const auto want = a->forward(next, fresh);
    EXPECT_SAME(a->forward(next, chosen), want);
    EXPECT_SAME(a->forward(next, loaded), want);
    EXPECT_EQ(loaded.length(), 41);
    EXPECT_EQ(cache.length(), 40);
    // The copies wrote nothing that the first one sees.
    DecodeCache again;
    a->forward(x, again);
    EXPECT_SAME(a->forward(x, cache), a->forward(x, again));
    KvCache kept;
    a->forward(x, kept);
    kept.reorder(index);
    EXPECT_SAME(a->forward(next, kept), want);
  }
}

TEST(AttentionWindow, SaysWhatIsWrong) {
  const auto refuse = [](const AttentionOptions& options,
                         const std::string& message) {
    expect_error([&] { Attention{options}; }, message);
  };
  refuse(small("softmax", true, -3), "[Attention] window -3 < 0");
  refuse(small(kCube, false, 8).norm_clamp("rescale"),
         "[Attention] norm_clamp rescale with window 8: it holds one matrix at "
         "the norm of softmax over all rows");
  const torch::NoGradGuard no_grad;
  const auto k = torch::randn({1, 2, 9, 3});
  KvCache cache;
  cache.slide(k, k, 5);
  expect_error([&] { cache.slide(k, k, 6); },
               "[KvCache] a window of 6 does not follow on one of 5");
  expect_error(
      [&] { cache.append(k, k); },
      "[KvCache] rows of a window of 5 cannot be followed by rows that "
      "see all");
  expect_error([&] { cache.truncate(7); },
               "[KvCache] cannot keep 7 rows of 9: a window has only the last "
               "4");
  cache.truncate(0);
  EXPECT_EQ(cache.length(), 0);
  expect_error([&] { KvCache().slide(k, k, 0); }, "[KvCache] window 0 < 1");
}

TEST(AttentionWindow, RefusesWhatWasNotSaved) {
  const torch::NoGradGuard no_grad;
  Attention a = make(decoder(kCube, 6));
  DecodeCache cache;
  a->forward(random_rows({1, 20, kDim}), cache);
  const auto saved = cache.save();
  ASSERT_EQ(saved.size(), 4U);  // sums, tail, rows, their numbers
  const auto load = [&](std::size_t i, const torch::Tensor& part) {
    auto changed = saved;
    changed[i] = part;
    return [changed] { DecodeCache::load(changed); };
  };
  expect_error(load(3, torch::tensor({7, 20}, torch::kLong)),
               "[KvCache] 5 rows are not those that a window of 7 keeps of 20");
  expect_error(load(3, torch::tensor({6, 19}, torch::kLong)),
               "[DecodeCache] saved rows of a window of 19 tokens and sums of "
               "20 are not of one cache");
  EXPECT_THROW(load(3, torch::tensor({6.0, 20.0}))(), c10::Error);
  EXPECT_THROW(load(3, torch::empty({0}, torch::kLong))(), c10::Error);
  EXPECT_THROW(load(2, saved[2].narrow(0, 0, 1))(), c10::Error);
}

}  // namespace attention_window_test
}  // namespace polyattn::nn
