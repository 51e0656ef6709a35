// Decoding: in steps of any length the rows are those of the whole sequence.
#include "polyattn/nn/kv_cache.h"

#include "nn/other_ops.h"
#include "nn/support.h"
#include "polyattn/nn/attention.h"
#include "torch/eager.h"

namespace polyattn::nn {
namespace kv_cache_test {

using test::expect_error;
using test::random_rows;

torch::Tensor in_steps(AttentionImpl& attention, const torch::Tensor& x,
                       const std::vector<std::int64_t>& steps) {
  KvCache cache;
  std::vector<torch::Tensor> rows;
  std::int64_t first = 0;
  for (const std::int64_t n : steps) {
    rows.push_back(attention.forward(x.narrow(1, first, n), cache));
    first += n;
    EXPECT_EQ(cache.length(), first);
  }
  EXPECT_EQ(first, x.size(1));
  return torch::cat(rows, 1);
}

TEST(KvCache, StepsAreTheWholeSequence) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(1);
  for (const char* formula : {"softmax", "x^3/sqrt(N)"}) {
    for (const std::int64_t kv_heads : {4, 2}) {
      for (const bool rotary : {false, true}) {
        for (const bool eager : {false, true}) {
          SCOPED_TRACE(std::string(formula) + ' ' + std::to_string(kv_heads) +
                       (rotary ? " rotary" : "") + (eager ? " eager" : ""));
          auto options = AttentionOptions(24, 4)
                             .activation(formula)
                             .kv_heads(kv_heads)
                             .causal(true);
          if (rotary) options.rotary(RotaryOptions().base(100));
          Attention attention(options);
          attention->to(torch::kDouble);
          if (eager)
            replace_ops(*attention,
                        {.attention = test::eager_attention, .gelu = {}});
          const auto x = random_rows({2, 9, 24});
          const auto whole = attention->forward(x);
          const std::vector<std::int64_t> ones(9, 1);
          EXPECT_SAME(in_steps(*attention, x, ones), whole);
          EXPECT_SAME(in_steps(*attention, x, {3, 1, 5}), whole);
          EXPECT_SAME(in_steps(*attention, x, {9}), whole);
        }
      }
    }
  }
}

TEST(KvCache, GrowsByDoubling) {
  torch::manual_seed(2);
  KvCache cache;
  EXPECT_EQ(cache.length(), 0);
  EXPECT_EQ(cache.capacity(), 0);
  EXPECT_FALSE(cache.keys().defined());
  EXPECT_FALSE(cache.values().defined());
  const auto k = random_rows({2, 3, 20, 4}), v = random_rows({2, 3, 20, 4});
  std::vector<std::int64_t> capacities;
  std::int64_t first = 0;
  for (const std::int64_t n : {3, 1, 1, 2, 13}) {
    cache.append(k.narrow(2, first, n), v.narrow(2, first, n));
    first += n;
    capacities.push_back(cache.capacity());
    EXPECT_TRUE(cache.keys().equal(k.narrow(2, 0, first)));
    EXPECT_TRUE(cache.values().equal(v.narrow(2, 0, first)));
  }
  EXPECT_EQ(capacities, (std::vector<std::int64_t>{3, 6, 6, 12, 24}));
}

TEST(KvCache, TruncatesAndResets) {
  torch::manual_seed(3);
  KvCache cache;
  const auto k = random_rows({1, 2, 5, 4}), v = random_rows({1, 2, 5, 4});
  cache.append(k, v);
  cache.truncate(2);
  EXPECT_EQ(cache.length(), 2);
  cache.append(v.narrow(2, 0, 1), k.narrow(2, 0, 1));
  EXPECT_TRUE(cache.keys().equal(
      torch::cat({k.narrow(2, 0, 2), v.narrow(2, 0, 1)}, 2)));
  cache.truncate(0);
  EXPECT_EQ(cache.keys().size(2), 0);
  cache.reset();
  EXPECT_EQ(cache.capacity(), 0);
  cache.append(k.narrow(3, 0, 1), v.narrow(3, 0, 1));
  EXPECT_EQ(cache.keys().size(3), 1);
}

TEST(KvCache, ReordersBeams) {
  torch::manual_seed(4);
  KvCache cache;
  const auto k = random_rows({3, 2, 5, 4}), v = random_rows({3, 2, 5, 4});
  const auto index = torch::tensor({2, 0, 0, 1}, torch::kLong);
  cache.reorder(index);  // nothing to do
  EXPECT_EQ(cache.length(), 0);
  cache.append(k, v);
  cache.append(k, v);
  cache.truncate(5);
  cache.reorder(index);
  EXPECT_TRUE(cache.keys().equal(k.index_select(0, index)));
  EXPECT_TRUE(cache.values().equal(v.index_select(0, index)));
  EXPECT_EQ(cache.capacity(), 10);
}

TEST(KvCache, KeepsTheTailOfAShortConvolution) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(5);
  Attention attention(AttentionOptions(8, 2).causal(true).short_conv(3));
  attention->to(torch::kDouble);
  attention->short_conv->weight.normal_();
  const auto x = random_rows({2, 6, 8});
  const auto index = torch::tensor({1, 0, 1}, torch::kLong);
  KvCache cache;
  attention->forward(x.narrow(1, 0, 5), cache);
  expect_error([&] { cache.truncate(4); },
               "[KvCache] cannot keep 4 rows of 5: a short convolution has "
               "only the tail of all");
  cache.truncate(5);
  cache.reorder(index);
  const auto chosen = x.index_select(0, index);
  EXPECT_SAME(attention->forward(chosen.narrow(1, 5, 1), cache),
              attention->forward(chosen).narrow(1, 5, 1));
  cache.truncate(0);
  EXPECT_SAME(attention->forward(chosen, cache), attention->forward(chosen));
}

TEST(KvCache, RefusesWhatDoesNotFit) {
  KvCache cache;
  const auto k = torch::randn({2, 3, 1, 4});
  expect_error([&] { cache.append(k[0], k[0]); },
               "[KvCache] keys of size [3, 1, 4] are not [B, G, N, D]");
  expect_error([&] { cache.append(k, k.narrow(3, 0, 3)); },
               "[KvCache] values of size [2, 3, 1, 3] != [2, 3, 1, 4] of keys");
  expect_error([&] { cache.append(k, k.to(torch::kDouble)); },
               "[KvCache] values of type Double != Float of keys");
  expect_error(
      [&] {
        cache.append(k, torch::randn({2, 3, 1, 4}).requires_grad_());
      },
      "[KvCache] keys or values want a gradient, which a cache does "
      "not pass on: decode under torch::NoGradGuard");
  EXPECT_EQ(cache.length(), 0);
  cache.append(k, k);
  const auto other = torch::randn({1, 3, 1, 4});
  expect_error([&] { cache.append(other, other); },
               "[KvCache] keys of size [1, 3, 1, 4] do not follow on "
               "[2, 3, 1, 4]");
  const auto wide = k.to(torch::kDouble);
  expect_error([&] { cache.append(wide, wide); },
               "[KvCache] keys of type Double do not follow on Float");
  expect_error([&] { cache.truncate(2); }, "[KvCache] cannot keep 2 rows of 1");
  expect_error([&] { cache.truncate(-1); },
               "[KvCache] cannot keep -1 rows of 1");
  expect_error([&] { cache.reorder(torch::tensor({0.5})); },
               "[KvCache] index of size [1] and type Float is not i64 [B]");
  EXPECT_EQ(cache.length(), 1);
}

}  // namespace kv_cache_test
}  // namespace polyattn::nn
