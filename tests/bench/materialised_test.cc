// The baseline must compute the same thing as we do, or the comparison is a
// lie.
#include "bench/materialised.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "bench/check.h"
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

class MaterialisedTest : public testing::TestWithParam<const char*> {
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

TEST_P(MaterialisedTest, ForwardAgrees) {
  for (const Causal causal : {Causal::kNone, Causal::kFirst, Causal::kLast}) {
    // One head: products in parallel; three: heads in parallel.
    for (const std::int64_t heads : {1, 3}) {
      const BenchCase c = make_case(Op::kForward, causal, heads);
      ASSERT_TRUE(Materialised::can_do(c));
      CaseRunner ours(c, 1);
      ours.run();
      check_against_reference(ours);
      Materialised baseline(ours);
      baseline.run();
      EXPECT_LE(difference(ours.o(), baseline.o()), kTolerance) << describe(c);
    }
  }
}

TEST_P(MaterialisedTest, BackwardAgrees) {
  for (const Causal causal : {Causal::kNone, Causal::kFirst, Causal::kLast}) {
    for (const std::int64_t heads : {1, 3}) {
      const BenchCase c = make_case(Op::kBackward, causal, heads);
      ASSERT_TRUE(Materialised::can_do(c));
      CaseRunner ours(c, 1);
      ours.run();
      check_against_reference(ours);
      Materialised baseline(ours);
      baseline.run();
      const AttentionGradients want = ours.gradients();
      EXPECT_LE(difference(*want.dq, baseline.dq()), kTolerance) << describe(c);
      EXPECT_LE(difference(*want.dk, baseline.dk()), kTolerance) << describe(c);
      EXPECT_LE(difference(*want.dv, baseline.dv()), kTolerance) << describe(c);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Activations, MaterialisedTest,
                         testing::Values("softmax", "x^3/sqrt(N)", "x^3",
                                         "1 + x + x^2/2", "x^8/14"));

TEST(Materialised, KnowsWhatItCannotDo) {
  BenchCase c{.activation = Activation::parse("x^3")};
  EXPECT_EQ(Materialised::can_do(c), have_sgemm());
  c.activation = Activation::parse("x^4/sum");
  EXPECT_FALSE(Materialised::can_do(c));
  c.activation = Activation::parse("x^3");
  c.n = c.m = 65536;
  EXPECT_FALSE(Materialised::can_do(c));
  c.n = c.m = 16;
  c.dtype = DType::kBF16;
  EXPECT_FALSE(Materialised::can_do(c));
}

}  // namespace
}  // namespace polyattn::bench
