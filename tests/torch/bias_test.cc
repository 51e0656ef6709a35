// A bias beside a mask, and both by index where leading dimensions share them:
// the windows of images, as Swin has them.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <limits>
#include <string>
#include <vector>

#include "polyattn/torch/attention.h"
#include "torch/call.h"
#include "torch/composed.h"
#include "torch/eager.h"
#include "torch/tensors.h"

namespace polyattn {
namespace bias_test {

using test::expect_near;
using test::expect_same_bits;
using test::leaf;
using test::Random;

using Options = AttentionOptions;
using Tensors = std::vector<at::Tensor>;

constexpr std::int64_t kImages = 3, kWindows = 4, kHeads = 2, kN = 9, kM = 7;

// q [B, W, H, N, D], a mask of each window and a bias of each head.
struct Windows {
  explicit Windows(at::ScalarType type = at::kDouble)
      : q(Random(1).normal({kImages, kWindows, kHeads, kN, 5}, type)),
        k(Random(2).normal({kImages, kWindows, kHeads, kM, 5}, type)),
        v(Random(3).normal({kImages, kWindows, kHeads, kM, 6}, type)),
        d_o(Random(4).normal({kImages, kWindows, kHeads, kN, 6}, type)),
        mask(Random(5).bools({kWindows, 1, kN, kM}, 0.7)),
        bias(Random(6).normal({kHeads, kN, kM}, type)) {
    mask.select(0, 1).select(1, 2).fill_(false);  // a row that sees nothing
    bias[1][3][4] = -std::numeric_limits<double>::infinity();
  }
  at::Tensor q, k, v, d_o, mask, bias;
};

at::Tensor flat(const at::Tensor& t) { return t.flatten(0, 1); }

// Of [B W, H, N, M], every mask and bias written out.
Options written_out(const Options& options) {
  const auto full = [](const c10::optional<at::Tensor>& t) {
    return t ? c10::optional<at::Tensor>(
                   flat(t->expand({kImages, kWindows, kHeads, kN, kM})))
             : t;
  };
  return Options(options).mask(full(options.mask())).bias(full(options.bias()));
}

// Output and gradients against torch ops on the flat batch.
void expect_eager(const Windows& in, const Options& options,
                  const Tensors& learned) {
  Tensors by = {leaf(in.q), leaf(in.k), leaf(in.v)};
  by.insert(by.end(), learned.begin(), learned.end());
  const at::Tensor got = attention(by[0], by[1], by[2], options);
  const at::Tensor want =
      test::eager_attention(flat(by[0]), flat(by[1]), flat(by[2]),
                            written_out(options))
          .unflatten(0, {kImages, kWindows});
  expect_near("o", got, want);
  const Tensors a = test::gradients({got}, by, {in.d_o});
  const Tensors b = test::gradients({want}, by, {in.d_o});
  for (std::size_t i = 0; i < by.size(); ++i) {
    SCOPED_TRACE(i);
    expect_near("gradient", a[i], b[i]);
  }
}

class Bias : public ::testing::TestWithParam<std::string> {
 protected:
  Options base() const { return Options().activation(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Formula, Bias,
                         ::testing::ValuesIn(test::kEagerFormulas));

TEST_P(Bias, BesideABoolMaskOfEachWindow) {
  const Windows in;
  const at::Tensor bias = leaf(in.bias);
  expect_eager(in, base().mask(in.mask).bias(bias), {bias});
  expect_eager(in, base().mask(in.mask).bias(bias).causal(true), {bias});
}

// Whatever the leading dimensions share.
TEST_P(Bias, OfEverySize) {
  const Windows in;
  for (const std::vector<std::int64_t>& size :
       std::vector<std::vector<std::int64_t>>{{kN, kM},
                                              {1, 1},
                                              {kWindows, 1, kN, kM},
                                              {kWindows, kHeads, 1, kM},
                                              {kImages, 1, 1, kN, kM},
                                              {kImages, kWindows, 1, kN, 1},
                                              {1, kWindows, kHeads, kN, kM}}) {
    SCOPED_TRACE(at::IntArrayRef(size).vec().size());
    const at::Tensor bias = leaf(Random(7).normal(size));
    expect_eager(in, base().bias(bias), {bias});
  }
}

// Numbers are added, whichever argument has them.
TEST_P(Bias, AndAMaskOfNumbersAreAdded) {
  const Windows in;
  const at::Tensor bias = leaf(in.bias);
  const at::Tensor mask = leaf(Random(8).normal({kWindows, 1, kN, kM}));
  const Options both = base().mask(mask).bias(bias);
  const Options sum = base().mask(mask + bias);
  expect_same_bits("o", attention(in.q, in.k, in.v, both),
                   attention(in.q, in.k, in.v, sum));
  const auto gradients = [&](const Options& options) {
    return test::gradients({attention(in.q, in.k, in.v, options)}, {mask, bias},
                           {in.d_o});
  };
  const Tensors got = gradients(both), want = gradients(sum);
  expect_same_bits("d_mask", got[0], want[0]);
  expect_same_bits("d_bias", got[1], want[1]);
  expect_near(
      "d_bias", got[1],
      test::gradients({attention(in.q, in.k, in.v, base().bias(mask + bias))},
                      {bias}, {in.d_o})[0]);
}

TEST_P(Bias, KernelsAgreeWithTheDefinitionOfEveryOrder) {
  const Windows in;
  const auto second = [&](bool fused) {
    const Tensors t = {leaf(in.q), leaf(in.k), leaf(in.v), leaf(in.bias)};
    const Options options = base().mask(in.mask).bias(t[3]);
    const at::Tensor o =
        fused ? attention(t[0], t[1], t[2], options).flatten(0, 1)
              : composed_attention(make_call(t[0], t[1], t[2], options));
    Tensors first = test::gradients({o}, t, {flat(in.d_o)}, true);
    // Where the bias is -inf nothing depends on it.
    Tensors weights;
    for (std::size_t i = 0; i < t.size(); ++i)
      weights.push_back(Random(9 + i).normal(t[i].sizes()));
    return test::gradients(first, t, weights);
  };
  const Tensors got = second(true), want = second(false);
  for (std::size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE(i);
    expect_near("second derivative", got[i], want[i]);
  }
}

// A divisor of the batch and what is written out are the same sums in the same
// order, but for the gradient of what is shared.
TEST(BiasByIndex, GivesTheSameBitsInEveryType) {
  for (const at::ScalarType type :
       {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    const Windows in(type);
    const Options options =
        Options().activation("x^3/sqrt(N)").mask(in.mask).bias(in.bias);
    const auto run = [&](const Options& own) {
      const Tensors t = {leaf(flat(in.q)), leaf(flat(in.k)), leaf(flat(in.v))};
      const AttentionWithNorms got =
          attention_with_norms(t[0], t[1], t[2], own);
      Tensors all = test::gradients({got.output}, t, {flat(in.d_o)});
      all.insert(all.end(), {got.output, got.norms.weight, got.norms.jacobian});
      return all;
    };
    Options own = options;
    own.mask(in.mask.unsqueeze(0)
                 .expand({kImages, -1, -1, -1, -1})
                 .reshape({-1, 1, kN, kM}));
    const Tensors got = run(own), want = run(written_out(options));
    // With two leading dimensions nothing is repeated.
    const Tensors five = {leaf(in.q), leaf(in.k), leaf(in.v)};
    const at::Tensor o = attention(five[0], five[1], five[2], options);
    const Tensors gradients = test::gradients({o}, five, {in.d_o});
    for (std::size_t i = 0; i < got.size(); ++i)
      expect_same_bits("flat", got[i], want[i]);
    for (std::size_t i = 0; i < 3; ++i)
      expect_same_bits("gradient", flat(gradients[i]), want[i]);
    expect_same_bits("o", flat(o), want[3]);
  }
}

TEST(BiasByIndex, TakesNoCopies) {
  const Windows in;
  const Call call =
      make_call(in.q, in.k, in.v, Options().mask(in.mask).bias(in.bias));
  EXPECT_EQ(call.mask.sizes(), in.mask.sizes());
  EXPECT_TRUE(call.mask.is_alias_of(in.mask));
  EXPECT_EQ(call.bias.sizes(), in.bias.unsqueeze(0).sizes());
  EXPECT_TRUE(call.bias.is_alias_of(in.bias));
}

TEST(BiasByIndex, OfAnEmptyBatch) {
  const Windows in;
  const auto none = [](const at::Tensor& t) { return t.narrow(0, 0, 0); };
  const at::Tensor bias = leaf(in.bias);
  const at::Tensor o = attention(none(in.q), none(in.k), none(in.v),
                                 Options().mask(in.mask).bias(bias));
  EXPECT_EQ(o.sizes(), none(in.d_o).sizes());
  expect_same_bits("d_bias", test::gradients({o}, {bias}, {none(in.d_o)})[0],
                   at::zeros_like(bias));
}

}  // namespace bias_test
}  // namespace polyattn
