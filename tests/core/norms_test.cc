// The norms in linear time against those of the reference.
#include "polyattn/norms.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/kernel_cases.h"
#include "core/random_inputs.h"
#include "support/message_of.h"

namespace polyattn::test {
namespace {

// Sums of squares in f64 and f32: some thousand roundings of terms of one sign,
// and the difference that the Jacobian of `sum` is.
double tolerance(const Case& c) {
  return c.compute == DType::kF64 ? 1e-9 : 1e-3;
}

std::vector<AttentionNormsSq> norms_of(const Instance& instance, Path path,
                                       Path* taken = nullptr) {
  AttentionConfig config = instance.config();
  config.path = path;
  const Extents& size = instance.outputs(DType::kF64).o.tensor.size;
  const AttentionInputs in = instance.inputs();
  const std::int64_t batch =
      in.q_offsets.empty() ? size[0] : std::ssize(in.q_offsets) - 1;
  std::vector<AttentionNormsSq> norms(
      static_cast<std::size_t>(batch * size[1]));
  SerialParallel serial;
  const Path way = attention_norms(in, config, norms, serial);
  if (taken != nullptr) *taken = way;
  return norms;
}

void expect_reference(const Case& c) {
  SCOPED_TRACE(::testing::PrintToString(c));
  const Instance instance(c);
  const Outputs want = instance.reference();
  for (const Path path : {Path::kLinear, Path::kDense}) {
    Path taken = Path::kAuto;
    const auto got = norms_of(instance, path, &taken);
    EXPECT_EQ(taken, path);
    ASSERT_EQ(got.size(), want.stats.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double weight = want.stats[i].weight_sq;
      const double jacobian = want.stats[i].jacobian_sq;
      EXPECT_NEAR(got[i].weight, weight, tolerance(c) * weight) << i;
      EXPECT_NEAR(got[i].jacobian, jacobian, tolerance(c) * jacobian) << i;
    }
  }
}

TEST(Norms, OfEveryFormulaAndStructure) {
  for (const char* formula : {"x/sqrt(N)", "x^2/N", "x^3/sqrt(N)", "x^4/14",
                              "1 + x + x^2/2", "(2 - x^3)/sqrt(N)", "x^2/sum",
                              "-x^2/sum", "(1 + x + x^2)/sum", "3/sqrt(N)"}) {
    for (const DType type : {DType::kF32, DType::kF64}) {
      for (const Causal causal :
           {Causal::kNone, Causal::kFirst, Causal::kLast}) {
        Case c{.batch = 2, .heads = 4, .kv_heads = 2};
        c.n = 60, c.m = 101, c.d = 4, c.e = 3;
        c.formula = formula, c.causal = causal;
        c.dtype = c.compute = type;
        expect_reference(c);
        c.mask = Extra::kPadding, c.strided = true, c.scale = -0.3;
        expect_reference(c);
      }
    }
  }
}

TEST(Norms, OfRaggedBatchesAndEmptyOnes) {
  Case c{.heads = 2, .formula = "x^2/sqrt(N)", .causal = Causal::kLast};
  c.q_lengths = {30, 0, 1, 7}, c.k_lengths = {15, 3, 0, 30};
  c.dtype = c.compute = DType::kF64;
  expect_reference(c);
  expect_reference(
      Case{.n = 0, .m = 5, .formula = "x/N", .compute = DType::kF64});
  expect_reference(
      Case{.n = 5, .m = 0, .formula = "x/N", .compute = DType::kF64});
}

// The squares fade twice as fast. A short sequence is one chunk, and a degree
// whose square has none goes by the reference.
TEST(Norms, OfWeightsThatDecay) {
  for (const char* formula : {"x/sqrt(N)", "x^3/N", "1 + x + x^2/2", "x^2/sum",
                              "(1 + x + x^2)/sum", "x^6/sqrt(N)"}) {
    for (const std::int64_t chunk : {0, 48}) {
      Case c{.batch = 2, .heads = 4, .kv_heads = 2};
      c.n = 60, c.m = 101, c.d = 4, c.e = 3, c.chunk = chunk;
      c.formula = formula, c.causal = Causal::kLast;
      c.dtype = c.compute = DType::kF64, c.path = Path::kAuto;
      c.decay = chunk == 0 ? Decay::kGates : Decay::kHeads;
      c.mask = chunk == 0 ? Extra::kPadding : Extra::kAbsent;
      SCOPED_TRACE(::testing::PrintToString(c));
      const Instance instance(c);
      const Outputs want = instance.reference();
      const auto got = norms_of(instance, Path::kAuto);
      for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_NEAR(got[i].weight / want.stats[i].weight_sq, 1, 1e-9);
        EXPECT_NEAR(got[i].jacobian / want.stats[i].jacobian_sq, 1, 1e-9);
      }
    }
  }
}

// trace((Q^T Q)(K^T K)).
TEST(Norms, OfTheIdentityAreATrace) {
  Case c{.n = 300, .m = 200, .d = 5, .formula = "x", .compute = DType::kF64};
  c.dtype = DType::kF64;
  c.scale = 1;
  const Instance instance(c);
  double trace = 0;
  for (std::int64_t a = 0; a < c.d; ++a) {
    for (std::int64_t b = 0; b < c.d; ++b) {
      double qq = 0, kk = 0;
      for (std::int64_t i = 0; i < c.n; ++i)
        qq += at(instance.q.tensor, {0, 0, i, a}) *
              at(instance.q.tensor, {0, 0, i, b});
      for (std::int64_t j = 0; j < c.m; ++j)
        kk += at(instance.k.tensor, {0, 0, j, a}) *
              at(instance.k.tensor, {0, 0, j, b});
      trace += qq * kk;
    }
  }
  const auto got = norms_of(instance, Path::kLinear);
  EXPECT_NEAR(got[0].weight, trace, 1e-11 * trace);
  EXPECT_EQ(got[0].jacobian, 300.0 * 200.0);
}

TEST(Norms, LongSequencesAreLinearByChoice) {
  Case c{.n = 3000, .m = 3000, .d = 4, .e = 4, .formula = "x/sqrt(N)"};
  Path taken = Path::kAuto;
  norms_of(Instance(c), Path::kAuto, &taken);
  EXPECT_EQ(taken, Path::kLinear);
  c.n = c.m = 8, c.d = 16;
  c.formula = "x^4/sqrt(N)";
  norms_of(Instance(c), Path::kAuto, &taken);
  EXPECT_EQ(taken, Path::kDense);
}

TEST(Norms, TheEnvironmentOverridesTheChoice) {
  Path taken = Path::kAuto;
  ::setenv("POLYATTN_PLAN", "dense", 1);
  norms_of(Instance({.n = 3000, .m = 3000, .d = 4, .formula = "x/sqrt(N)"}),
           Path::kAuto, &taken);
  EXPECT_EQ(taken, Path::kDense);
  ::setenv("POLYATTN_PLAN", "linear", 1);
  norms_of(Instance({.n = 8, .m = 8, .d = 16, .formula = "x^4/sqrt(N)"}),
           Path::kAuto, &taken);
  EXPECT_EQ(taken, Path::kLinear);
  ::unsetenv("POLYATTN_PLAN");
}

// k^5 is beyond f32, and q k is 1 at most.
TEST(Norms, FeaturesThatOverflowGoDenseByChoice) {
  Case c{.n = 3000, .m = 3000, .d = 2, .e = 2, .formula = "x^3/N"};
  Instance instance(c);
  for_each_index(instance.k.tensor.size, [&](const Extents& x) {
    instance.k.set(x, 1e12 * at(instance.k.tensor, x));
    instance.q.set(x, 1e-12 * at(instance.q.tensor, x));
  });
  EXPECT_THROW(norms_of(instance, Path::kLinear), std::overflow_error);
  Path taken = Path::kAuto;
  const auto got = norms_of(instance, Path::kAuto, &taken);
  EXPECT_EQ(taken, Path::kDense);
  const Outputs want = instance.reference();
  EXPECT_NEAR(got[0].weight, want.stats[0].weight_sq,
              tolerance(c) * want.stats[0].weight_sq);
}

// c^2 is beyond f32, which holds c.
TEST(Norms, OfCoefficientsWhoseSquaresF32DoesNotHold) {
  for (const char* formula : {"1e-30 x^2/sqrt(N)", "1e25 x^2/sqrt(N)"}) {
    Case c{.n = 60, .m = 70, .d = 4, .formula = formula};
    expect_reference(c);
  }
}

void expect_refused(const Case& c, const std::string& part) {
  const std::string message = message_of<std::invalid_argument>(
      [&] { norms_of(Instance(c), Path::kLinear); });
  EXPECT_TRUE(contains(message, part)) << message;
}

TEST(Norms, WithoutALinearPathAreRefused) {
  expect_refused({.formula = "softmax"}, "softmax is not a polynomial");
  expect_refused({.formula = "x^5"}, "too high a degree");
  expect_refused({.formula = "x^4/sum"}, "too high a degree");
  const Instance instance(Case{.heads = 2, .kv_heads = 2});
  std::vector<AttentionNormsSq> one(1);
  SerialParallel serial;
  EXPECT_THROW(
      attention_norms(instance.inputs(), instance.config(), one, serial),
      std::invalid_argument);
}

}  // namespace
}  // namespace polyattn::test
