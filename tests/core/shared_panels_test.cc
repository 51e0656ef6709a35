// Bias and mask that examples share in turn: panels that are made once for the
// call give the bits of those that every strip makes for itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/kernel_cases.h"
#include "core/plan.h"
#include "core/problem.h"
#include "polyattn/attention.h"
#include "polyattn/reference.h"

namespace polyattn::test {
namespace {

constexpr std::int64_t kB = 8, kH = 2, kN = 37, kM = 41, kD = 9, kE = 5;

struct Values {
  Values(const Extents& extents, std::uint64_t seed)
      : size(extents), data(static_cast<std::size_t>(element_count(extents))) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    for (float& x : data) x = normal(random);
  }
  ConstTensor tensor() const { return view(data.data(), size); }

  Extents size;
  std::vector<float> data;
};

struct Seen {
  explicit Seen(const Extents& extents)
      : size(extents), data(static_cast<std::size_t>(element_count(extents))) {
    std::mt19937_64 random(7);
    for (std::uint8_t& x : data) x = random() % 4 != 0;
  }
  ConstMask mask() const {
    return {data.data(), size, view(static_cast<float*>(nullptr), size).stride};
  }

  Extents size;
  std::vector<std::uint8_t> data;
};

// `batch` entries, one after the other as often as it takes.
template <typename T>
T written_out(const T& t) {
  T all = t;
  while (all.size[0] < kB) {
    all.data.insert(all.data.end(), t.data.begin(), t.data.end());
    all.size[0] += t.size[0];
  }
  return all;
}

struct Results {
  std::vector<float> o = std::vector<float>(kB * kH * kN * kE);
  std::vector<float> dq = std::vector<float>(kB * kH * kN * kD);
  std::vector<float> dk = std::vector<float>(kB * kH * kM * kD);
};

Results run(const AttentionInputs& in, const AttentionConfig& config,
            const ConstTensor& d_o) {
  Results all;
  std::vector<RowState> rows(kB * kH * kN);
  const Tensor o = view(all.o.data(), {kB, kH, kN, kE});
  attention_forward(in, config, {.o = o, .rows = rows});
  attention_backward(in, config, {.d_o = d_o, .o = o, .rows = rows},
                     {.dq = view(all.dq.data(), {kB, kH, kN, kD}),
                      .dk = view(all.dk.data(), {kB, kH, kM, kD})});
  return all;
}

SharedPanels panels_of(const AttentionInputs& in, const AttentionConfig& c) {
  return plan_shared_panels(check_problem("test", in, c), 16);
}

class SharedPanelsTest : public ::testing::TestWithParam<const char*> {};

TEST_P(SharedPanelsTest, GiveTheSameBits) {
  const Values q({kB, kH, kN, kD}, 1), k({kB, kH, kM, kD}, 2),
      v({kB, kH, kM, kE}, 3), d_o({kB, kH, kN, kE}, 4);
  const Values bias({2, 1, kN, kM}, 5);
  const Seen seen({4, 1, kN, kM});
  const Values all_bias = written_out(bias);
  const Seen all_seen = written_out(seen);
  for (const Causal causal : {Causal::kNone, Causal::kLast}) {
    const AttentionConfig config{.activation = Activation::parse(GetParam()),
                                 .causal = causal};
    AttentionInputs in{q.tensor(), k.tensor(), v.tensor()};
    in.bias = bias.tensor(), in.mask = seen.mask();
    AttentionInputs plain = in;
    plain.bias = all_bias.tensor(), plain.mask = all_seen.mask();
    ASSERT_EQ(panels_of(in, config).sequences, 4);
    ASSERT_EQ(panels_of(plain, config).count(), 0);
    for_each_target(supported_targets(), [&](const std::string&) {
      const Results got = run(in, config, d_o.tensor());
      const Results want = run(plain, config, d_o.tensor());
      EXPECT_EQ(got.o, want.o);
      EXPECT_EQ(got.dq, want.dq);
      EXPECT_EQ(got.dk, want.dk);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Formula, SharedPanelsTest,
                         ::testing::Values("softmax", "x^3/sqrt(N)",
                                           "x^2/sum"));

TEST(SharedPanelsPlan, AreMadeWhereTheyPay) {
  const Values q({kB, kH, kN, kD}, 1), k({kB, kH, kM, kD}, 2),
      v({kB, kH, kM, kE}, 3);
  const auto count = [&](const Extents& bias, Causal causal = Causal::kNone) {
    const Values values(bias, 5);
    AttentionInputs in{q.tensor(), k.tensor(), v.tensor()};
    in.bias = values.tensor();
    return panels_of(in, {.causal = causal}).count();
  };
  constexpr std::int64_t kStrips = 3;
  EXPECT_EQ(count({1, 1, kN, kM}), kStrips);
  EXPECT_EQ(count({1, kH, kN, kM}), kH * kStrips);
  EXPECT_EQ(count({2, kH, kN, kM}), 2 * kH * kStrips);
  // Two uses of each.
  EXPECT_EQ(count({4, kH, kN, kM}), 0);
  // Rows that are alike are made quickly, if they are.
  EXPECT_EQ(count({1, 1, 1, kM}), 0);
  EXPECT_EQ(count({1, 1, 1, kM}, Causal::kLast), kStrips);
  AttentionInputs none{q.tensor(), k.tensor(), v.tensor()};
  EXPECT_EQ(panels_of(none, {}).count(), 0);
}

TEST(SharedPanelsPlan, HaveABoundInMemory) {
  const auto count = [](std::int64_t n) {
    AttentionInputs in;
    in.q = in.k = in.v = view(static_cast<float*>(nullptr), {16, 1, n, 0});
    const std::vector<std::uint8_t> data(static_cast<std::size_t>(n * n), 1);
    const Extents size = {1, 1, n, n};
    in.mask = ConstMask{data.data(), size,
                        view(static_cast<float*>(nullptr), size).stride};
    return panels_of(in, {}).count();
  };
  EXPECT_EQ(count(512), 512 / 16);
  EXPECT_EQ(count(528), 0);
}

// Every example and head of each, in the order of examples, has its own.
TEST(SharedPanelsPlan, PanelsAreNumbered) {
  const SharedPanels plan{.sequences = 3, .heads = 2, .strips = 4, .keys = 5};
  EXPECT_EQ(plan.count(), 24);
  EXPECT_EQ(plan.of(0, 0, 0), 0);
  EXPECT_EQ(plan.of(0, 1, 2), 6);
  EXPECT_EQ(plan.of(5, 1, 3), 23);
  const SharedPanels one{.sequences = 3, .heads = 1, .strips = 4, .keys = 5};
  EXPECT_EQ(one.of(4, 7, 1), 5);
}

}  // namespace
}  // namespace polyattn::test
