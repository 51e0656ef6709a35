// The rival must compute the same thing as we do, or the comparison is a lie.
#include "bench/rival.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "bench/bench_check.h"
#include "bench/sgemm.h"

namespace polyattn::bench {
namespace {

// Largest difference, relative to the largest value.
double difference(const ConstTensor& a, const ConstTensor& b) {
  double worst = 0, largest = 0;
  for (std::int64_t i = 0; i < element_count(a.size); ++i) {
    const double x = load_element(a.data, a.dtype, i);
    const double y = load_element(b.data, b.dtype, i);
    worst = std::max(worst, std::abs(x - y));
    largest = std::max(largest, std::abs(x));
  }
  return worst / largest;
}

// Both sum at most 37 + 16 products of single precision: 53 * 2^-24 = 3e-6,
// and the activation multiplies a relative error of the score by its degree.
constexpr double kTolerance = 1e-5;

class RivalTest : public testing::TestWithParam<const char*> {
 protected:
  static BenchCase make_case(Op op, Causal causal, std::int64_t heads) {
    return {.op = op,
            .activation = Activation::parse(GetParam()),
            .b = 2,
            .h = heads,
            .g = heads,
            .n = 33,
            .m = 37,
            .d = 16,
            .e = 11,
            .causal = causal,
            .threads = 2};
  }

  void SetUp() override {
    if (!have_sgemm()) GTEST_SKIP() << "built without OpenBLAS";
  }
};

TEST_P(RivalTest, ForwardAgrees) {
  for (const Causal causal : {Causal::kNone, Causal::kFirst, Causal::kLast}) {
    // One head: products in parallel; three: heads in parallel.
    for (const std::int64_t heads : {1, 3}) {
      const BenchCase c = make_case(Op::kForward, causal, heads);
      ASSERT_TRUE(Rival::can_do(c));
      CaseRunner ours(c, 1);
      ours.run();
      check_against_reference(ours);
      Rival rival(ours);
      rival.run();
      EXPECT_LE(difference(ours.o(), rival.o()), kTolerance) << describe(c);
    }
  }
}

TEST_P(RivalTest, BackwardAgrees) {
  for (const Causal causal : {Causal::kNone, Causal::kFirst, Causal::kLast}) {
    for (const std::int64_t heads : {1, 3}) {
      const BenchCase c = make_case(Op::kBackward, causal, heads);
      ASSERT_TRUE(Rival::can_do(c));
      CaseRunner ours(c, 1);
      ours.run();
      check_against_reference(ours);
      Rival rival(ours);
      rival.run();
      const AttentionGradients want = ours.gradients();
      EXPECT_LE(difference(*want.dq, rival.dq()), kTolerance) << describe(c);
      EXPECT_LE(difference(*want.dk, rival.dk()), kTolerance) << describe(c);
      EXPECT_LE(difference(*want.dv, rival.dv()), kTolerance) << describe(c);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Activations, RivalTest,
                         testing::Values("softmax", "x^3/sqrt(N)", "x^3",
                                         "1 + x + x^2/2", "x^8/14"));

TEST(Rival, KnowsWhatItCannotDo) {
  BenchCase c{.activation = Activation::parse("x^3")};
  EXPECT_EQ(Rival::can_do(c), have_sgemm());
  c.activation = Activation::parse("x^4/sum");
  EXPECT_FALSE(Rival::can_do(c));
  c.activation = Activation::parse("x^3");
  c.n = c.m = 65536;
  EXPECT_FALSE(Rival::can_do(c));
  c.n = c.m = 16;
  c.dtype = DType::kBF16;
  EXPECT_FALSE(Rival::can_do(c));
}

}  // namespace
}  // namespace polyattn::bench
