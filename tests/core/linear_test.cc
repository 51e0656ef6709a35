// The linear path against the reference, within the error that rounding can
// explain.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/linear_cases.h"

namespace polyattn::test {
namespace {

class Linear : public EveryLinearFormula {};

INSTANTIATE_TEST_SUITE_P(Formula, Linear,
                         ::testing::Range(0, kLinearFormulaCount));

TEST_P(Linear, EveryStructureTypeAndTarget) {
  int turn = GetParam();
  for (int s = 0; s < kLinearStructures; ++s) {
    for (const Types& types : kTypes) {
      ++turn;
      if (light() && turn % 4 != 0) continue;
      Case c = with_linear_structure(small_case(turn), s);
      c.formula = formula();
      c.dtype = types.dtype, c.compute = types.compute;
      expect_linear(c, supported_targets());
    }
  }
}

// Lengths around strips of 48 and chunks, each with some of the others.
TEST_P(Linear, AwkwardLengths) {
  constexpr std::int64_t kLengths[] = {0, 1, 47, 48, 49, 95, 97, 289};
  constexpr std::int64_t kWidths[] = {1, 3, 16, 20};
  for (int pair = 0; pair < 64; ++pair) {
    const int turn = GetParam() + pair;
    if (turn % (light() ? 24 : 6) != 0) continue;
    Case c = small_case(turn);
    c.n = kLengths[pair / 8], c.m = kLengths[pair % 8];
    c.d = kWidths[pair % 4], c.e = kWidths[pair / 4 % 4];
    c.chunk = pair % 3 == 0 ? 0 : pair % 3 * 48;
    c.formula = formula();
    c = with_linear_structure(c, turn / 6 % kLinearStructures);
    c.dtype = kTypes[turn / 6 % 8].dtype;
    c.compute = kTypes[turn / 6 % 8].compute;
    expect_linear(c, targets_for(c));
  }
}

TEST_P(Linear, EmptySizes) {
  std::vector<Case> list(8, Case{.batch = 2,
                                 .heads = 2,
                                 .n = 5,
                                 .m = 6,
                                 .d = 3,
                                 .formula = formula(),
                                 .mask = Extra::kPadding});
  list[0].batch = 0, list[1].n = 0, list[2].m = 0, list[3].d = 0;
  list[4].e = 0, list[5].heads = list[5].kv_heads = 0;
  list[6].heads = 0, list[6].kv_heads = 2;
  list[7].q_lengths = {0, 2, 0}, list[7].k_lengths = {3, 0, 0};
  for (const Case& each : list) {
    for (const Causal causal : {Causal::kNone, Causal::kFirst, Causal::kLast}) {
      Case c = each;
      c.causal = causal;
      expect_linear(c, supported_targets());
    }
  }
}

// A bound that anything would meet tests nothing. Absolute values do not
// cancel, which costs a factor of sqrt(D) for each degree; about 2^10 roundings
// (in f64 the reference has as many) and, under `sum`, the rows that nearly
// vanish do the rest.
TEST_P(Linear, TheBoundIsSharp) {
  for (const DType type : {DType::kF32, DType::kF64}) {
    const Case c{.n = 63,
                 .m = 97,
                 .d = 8,
                 .e = 16,
                 .formula = formula(),
                 .dtype = type,
                 .compute = type};
    SCOPED_TRACE(::testing::PrintToString(c));
    const Instance instance(c);
    const Activation f = instance.config().activation;
    const Outputs want = instance.reference();
    const Outputs bound = linear_bound(instance, want, type);
    const double u = type == DType::kF32 ? 0x1p-24 : 0x1p-52;
    const double ratio = u * std::pow(std::sqrt(8), f.degree) *
                         (f.divisor == Divisor::kSum ? 0x1p15 : 0x1p11);
    expect_sharp("o", want.o, bound.o, ratio);
    expect_sharp("dv", want.dv, bound.dv, ratio);
    if (f.degree == 0) continue;  // zero
    expect_sharp("dq", want.dq, bound.dq, ratio);
    expect_sharp("dk", want.dk, bound.dk, ratio);
  }
}

double relative_rms(const Buffer& got, const Buffer& want) {
  double error = 0, size = 0;
  for_each_index(want.tensor.size, [&](const Extents& x) {
    error += std::pow(at(got.tensor, x) - at(want.tensor, x), 2);
    size += std::pow(at(want.tensor, x), 2);
  });
  return std::sqrt(error / size);
}

// Relative errors of o, dq, dk, dv in the mean.
std::vector<double> typical_errors(Case c, Path path, const Outputs& want) {
  c.path = path;
  const Outputs got = run_linear(Instance(c), c.dtype);
  return {relative_rms(got.o, want.o), relative_rms(got.dq, want.dq),
          relative_rms(got.dk, want.dk), relative_rms(got.dv, want.dv)};
}

// The bound is for the worst case; roundings mostly cancel. This is what a user
// gets. The gradients of `sum` where a row sees few keys are as uncertain on
// the dense path.
TEST(LinearPrecision, TypicalErrorsAreSmall) {
  for (const char* formula :
       {"x/sqrt(N)", "x^2/sqrt(N)", "x^3/sqrt(N)", "x^4/sqrt(N)", "x^2/sum",
        "x^4/sum", "(1 + x + x^2/2)/sum"}) {
    for (const Causal causal : {Causal::kNone, Causal::kFirst}) {
      const Case c{.n = light() ? 300 : 1000,
                   .m = light() ? 300 : 1000,
                   .d = 16,
                   .e = 16,
                   .formula = formula,
                   .causal = causal};
      SCOPED_TRACE(::testing::PrintToString(c));
      const Outputs want = Instance(c).reference();
      for_each_target(targets_for(c), [&](const std::string&) {
        const auto linear = typical_errors(c, Path::kLinear, want);
        const auto dense = typical_errors(c, Path::kDense, want);
        for (std::size_t i = 0; i < linear.size(); ++i)
          EXPECT_LT(linear[i], std::max(5e-6, 4 * dense[i])) << i;
      });
    }
  }
}

// Wide rows, for which a low degree has as many features as a block, a group
// and more.
TEST(LinearShapes, WideRows) {
  for (const char* formula : {"x/sqrt(N)", "x^2/N", "(1 + x + x^2/2)/sum"}) {
    for (const std::int64_t d : {59, 64}) {
      for (const Causal causal : {Causal::kNone, Causal::kLast}) {
        const Case c{.heads = 2,
                     .n = 100,
                     .m = 113,
                     .d = d,
                     .e = 123 - d,
                     .formula = formula,
                     .causal = causal,
                     .chunk = 48};
        expect_linear(c, targets_for(c));
      }
    }
  }
}

// A state of 35 MB: one pair at a time, in eight groups of features.
TEST(LinearShapes, AStateLargerThanItsShare) {
  if (light()) return;
  Case c{.heads = 2,
         .kv_heads = 2,
         .n = 20,
         .m = 33,
         .d = 20,
         .e = 500,
         .formula = "x^4/N"};
  expect_linear(c, {supported_targets().front()});
  c.causal = Causal::kLast;
  expect_linear(c, {supported_targets().front()});
}

// A mask of each head, which heads that have keys of their own may have.
TEST(LinearShapes, MasksOfHeads) {
  for (const Causal causal : {Causal::kNone, Causal::kFirst, Causal::kLast}) {
    const Case c{.batch = 2,
                 .heads = 3,
                 .kv_heads = 3,
                 .n = 60,
                 .m = 101,
                 .d = 5,
                 .formula = "(1 + x + x^2/2)/sum",
                 .causal = causal,
                 .mask = Extra::kPadding,
                 .path = Path::kLinear,
                 .chunk = 48};
    SCOPED_TRACE(::testing::PrintToString(c));
    Instance instance(c);
    instance.mask_size = {1, 3, 1, c.m};
    instance.mask.resize(static_cast<std::size_t>(3 * c.m));
    for (std::size_t j = 0; j < instance.mask.size(); ++j)
      instance.mask[j] = j * j % 7 < 3 ? 0 : 1;
    const Outputs want = instance.reference();
    const Outputs bound = linear_bound(instance, want, c.dtype);
    for_each_target(supported_targets(), [&](const std::string&) {
      expect_all_within(run_linear(instance, c.dtype), want, bound);
    });
  }
}

}  // namespace
}  // namespace polyattn::test
