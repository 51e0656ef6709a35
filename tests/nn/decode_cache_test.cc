// Decoding with keys and values or with sums: in steps of any length the rows
// are those of the whole sequence.
#include "polyattn/nn/decode_cache.h"

#include "nn/support.h"
#include "polyattn/nn/attention.h"

namespace polyattn::nn {
namespace decode_cache_test {

using test::expect_error;
using test::random_rows;

constexpr DecodeMode kModes[] = {DecodeMode::kAuto, DecodeMode::kCache,
                                 DecodeMode::kSums};

torch::Tensor in_steps(AttentionImpl& attention, const torch::Tensor& x,
                       DecodeMode mode, std::int64_t step) {
  DecodeCache cache(mode);
  std::vector<torch::Tensor> rows;
  for (std::int64_t first = 0; first < x.size(1); first += step) {
    const std::int64_t n = std::min(step, x.size(1) - first);
    rows.push_back(attention.forward(x.narrow(1, first, n), cache));
    EXPECT_EQ(cache.length(), first + n);
  }
  return torch::cat(rows, 1);
}

AttentionOptions small(const char* formula) {
  return AttentionOptions(12, 4).activation(formula).kv_heads(2).causal(true);
}

TEST(DecodeCache, StepsAreTheWholeSequence) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(1);
  for (const char* formula :
       {"softmax", "x^3/sqrt(N)", "x^2/sum", "relu^2/N"}) {
    for (const DecodeMode mode : kModes) {
      if (mode == DecodeMode::kSums && formula[0] != 'x') continue;
      SCOPED_TRACE(std::string(formula) + ' ' +
                   std::to_string(static_cast<int>(mode)));
      Attention attention(small(formula).rotary(RotaryOptions().base(100)));
      attention->to(torch::kDouble);
      const auto x = random_rows({2, 130, 12});
      const auto whole = attention->forward(x);
      EXPECT_SAME(in_steps(*attention, x, mode, 1), whole);
      EXPECT_SAME(in_steps(*attention, x, mode, 49), whole);
      EXPECT_SAME(in_steps(*attention, x, mode, 130), whole);
    }
  }
}

TEST(DecodeCache, KnowsWhatWasLearned) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(2);
  for (const char* kind : {"shared", "head"}) {
    for (const DecodeMode mode : kModes) {
      SCOPED_TRACE(kind);
      Attention attention(small("x^2/sqrt(N)")
                              .learned_scale(true)
                              .learned_coefficients(kind)
                              .qk_norm("rms"));
      attention->to(torch::kDouble);
      attention->coefficients.copy_(torch::randn_like(attention->coefficients));
      attention->score_scale.copy_(torch::randn_like(attention->score_scale));
      const auto x = random_rows({1, 110, 12});
      EXPECT_SAME(in_steps(*attention, x, mode, 7), attention->forward(x));
    }
  }
}

TEST(DecodeCache, SumsDoNotGrow) {
  const torch::NoGradGuard no_grad;
  Attention attention(small("x^2/sqrt(N)").center_values(true).short_conv(4));
  DecodeCache sums(DecodeMode::kSums), keys(DecodeMode::kCache);
  const auto x = torch::randn({1, 96, 12});
  attention->forward(x, sums);
  attention->forward(x, keys);
  EXPECT_EQ(sums.folded(), 96);
  EXPECT_EQ(keys.folded(), 0);
  const std::size_t constant = sums.bytes(), once = keys.bytes();
  for (int i = 0; i < 9; ++i) {
    attention->forward(x, sums);
    attention->forward(x, keys);
  }
  EXPECT_EQ(sums.bytes(), constant);
  EXPECT_GE(keys.bytes(), 10 * once);
}

void expect_forks(const AttentionOptions& options) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(3);
  Attention attention(options);
  attention->to(torch::kDouble);
  if (attention->short_conv) attention->short_conv->weight.normal_();
  const auto x = random_rows({3, 60, 12}), next = random_rows({2, 1, 12});
  DecodeCache cache(DecodeMode::kSums);
  attention->forward(x, cache);
  const auto index = torch::tensor({2, 0}, torch::kLong);
  DecodeCache chosen = cache;
  chosen.reorder(index);
  DecodeCache fresh(DecodeMode::kSums);
  attention->forward(x.index_select(0, index), fresh);
  DecodeCache loaded = DecodeCache::load(chosen.save());
  const auto want = attention->forward(next, fresh);
  EXPECT_SAME(attention->forward(next, chosen), want);
  EXPECT_SAME(attention->forward(next, loaded), want);
  EXPECT_EQ(loaded.length(), 61);
  EXPECT_EQ(cache.length(), 60);
  cache.reset();
  EXPECT_EQ(cache.length(), 0);
  EXPECT_TRUE(cache.save().empty());
}

TEST(DecodeCache, ForksReordersAndIsSaved) {
  expect_forks(small("x^2/sqrt(N)"));
  expect_forks(small("x^2/sqrt(N)").center_values(true));
  expect_forks(small("x^2/sqrt(N)").center_values(true).short_conv(3));
}

// Neither that of the weights nor that of the projection is left out in
// silence.
TEST(DecodeCache, RefusesDropoutInTraining) {
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({1, 3, 12});
  for (const auto& options : {small("x^2/sqrt(N)").dropout(0.5),
                              small("x^2/sqrt(N)").projection_dropout(0.5)}) {
    Attention attention(options);
    DecodeCache cache;
    expect_error([&] { attention->forward(x, cache); },
                 "[Attention] decoding has no dropout: call eval() first");
    EXPECT_EQ(cache.length(), 0);
    attention->eval();
    EXPECT_EQ(attention->forward(x, cache).sizes(), x.sizes());
  }
}

TEST(DecodeCache, RefusesWhatDoesNotFit) {
  const torch::NoGradGuard no_grad;
  Attention attention(small("x^2/sqrt(N)"));
  DecodeCache cache;
  attention->forward(torch::randn({2, 3, 12}), cache);
  EXPECT_THROW(attention->forward(torch::randn({1, 3, 12}), cache), c10::Error);
  EXPECT_EQ(cache.length(), 3);
  expect_error([&] { cache.reorder(torch::tensor({1.0})); },
               "[DecodeCache] index of size [1] and type Float is not i64 [B]");
  Attention other(small("x^4/sum"));
  expect_error(
      [&] {
        other->forward(torch::randn({2, 1, 12}), cache);
      },
      "[DecodeCache] x^4/sum does not follow on x^2/sqrt(N)");
  DecodeCache sums(DecodeMode::kSums);
  Attention softmax(small("softmax"));
  expect_error(
      [&] {
        softmax->forward(torch::randn({2, 1, 12}), sums);
      },
      "[decode] no sums: softmax is not a polynomial");
  std::vector<torch::Tensor> saved = cache.save();
  ASSERT_EQ(saved.size(), 1U);
  const auto sum = torch::zeros({2, 2, 1, 5}, torch::kDouble);
  expect_error(
      [&] {
        DecodeCache::load({saved[0], sum});
      },
      "[DecodeCache] a saved sum of values of size [2, 2, 1, 5] and "
      "type Double is not of this cache");
  expect_error(
      [&] {
        DecodeCache::load({saved[0], torch::zeros({3, 2, 24})});
      },
      "[DecodeCache] a saved tail of size [3, 2, 24] is not of this cache");
  saved[0][40] = saved[0][40].item<int>() ^ 1;
  EXPECT_THROW(DecodeCache::load(saved), c10::Error);
}

}  // namespace decode_cache_test
}  // namespace polyattn::nn
