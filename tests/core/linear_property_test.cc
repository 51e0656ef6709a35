// What must hold on the linear path whatever the numbers are: it against itself
// and against the dense path.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/linear_cases.h"

namespace polyattn::test {
namespace {

Outputs bound_of(const Instance& instance, DType storage) {
  return linear_bound(instance, instance.reference(), storage);
}

class LinearProperty : public EveryLinearFormula {};

INSTANTIATE_TEST_SUITE_P(Formula, LinearProperty,
                         ::testing::Range(0, kLinearFormulaCount));

TEST_P(LinearProperty, KeysMayComeInAnyOrder) {
  const Case c{.heads = 2,
               .kv_heads = 2,
               .n = 60,
               .m = 133,
               .d = 7,
               .e = 10,
               .formula = formula(),
               .path = Path::kLinear};
  Instance here(c), there(c);
  const auto from = [&](const Extents& x) {  // 50 and 133 share no factor
    return Extents{x[0], x[1], x[2] * 50 % c.m, x[3]};
  };
  const auto shuffled = [&](const Buffer& b) {
    return filled(b, [&](const Extents& x) { return at(b.tensor, from(x)); });
  };
  for_each_index(there.k.tensor.size, [&](const Extents& x) {
    there.k.set(x, at(here.k.tensor, from(x)));
  });
  for_each_index(there.v.tensor.size, [&](const Extents& x) {
    there.v.set(x, at(here.v.tensor, from(x)));
  });
  const Outputs bound = bound_of(here, c.dtype);
  const Buffer dk = shuffled(bound.dk), dv = shuffled(bound.dv);
  for_each_target(supported_targets(), [&](const std::string&) {
    const Outputs x = run_linear(here, c.dtype);
    const Outputs y = run_linear(there, c.dtype);
    expect_near("o", y.o, x.o, bound.o);
    expect_near("dq", y.dq, x.dq, bound.dq);
    expect_near("dk", y.dk, shuffled(x.dk), dk);
    expect_near("dv", y.dv, shuffled(x.dv), dv);
  });
}

TEST_P(LinearProperty, ABatchIsOneCallForEachEntry) {
  const Case c{.batch = 5,
               .heads = 2,
               .n = 70,
               .m = 75,
               .d = 6,
               .e = 4,
               .formula = formula(),
               .causal = GetParam() % 2 == 0 ? Causal::kNone : Causal::kLast,
               .path = Path::kLinear,
               .chunk = 48};
  const Instance together(c);
  const Outputs all = run_linear(together, c.dtype);
  Case one = c;
  one.batch = 1;
  for (std::int64_t b = 0; b < c.batch; ++b) {
    Instance alone(one);
    const auto take = [&](Buffer& to, const Buffer& from) {
      for_each_index(to.tensor.size, [&](const Extents& x) {
        to.set(x, at(from.tensor, {b, x[1], x[2], x[3]}));
      });
    };
    take(alone.q, together.q), take(alone.k, together.k);
    take(alone.v, together.v), take(alone.d_o, together.d_o);
    const Outputs want = run_linear(alone, c.dtype);
    const Outputs bound = bound_of(alone, c.dtype);
    const auto entry = [&](const Buffer& like, const Buffer& from) {
      Buffer to(DType::kF64, like.tensor.size,
                contiguous_strides(like.tensor.size));
      take(to, from);
      return to;
    };
    expect_near("o", entry(want.o, all.o), want.o, bound.o);
    expect_near("dq", entry(want.dq, all.dq), want.dq, bound.dq);
    expect_near("dk", entry(want.dk, all.dk), want.dk, bound.dk);
    expect_near("dv", entry(want.dv, all.dv), want.dv, bound.dv);
  }
}

// Polynomials, shapes, structures and types by chance: the two paths agree.
TEST(LinearRandom, ItAgreesWithTheDensePath) {
  std::mt19937_64 random(3);
  const auto below = [&](std::uint64_t n) {
    return static_cast<std::int64_t>(random() % n);
  };
  for (int turn = 0; turn < (light() ? 20 : 120); ++turn) {
    Case c{.n = below(130), .m = below(130), .d = 1 + below(9), .e = below(20)};
    c.seed = random();
    c = with_linear_structure(c, turn % kLinearStructures);
    c.chunk = 48 * below(4);
    c.dtype = kTypes[below(8)].dtype;
    c.compute = kTypes[below(8)].compute;
    c.formula = "(" + std::to_string(1 + below(3));
    for (int p = 1; p <= 5; ++p)
      if (below(2) == 1)
        c.formula += (below(2) == 1 ? " + x^" : " - x^") + std::to_string(p) +
                     "/" + std::to_string(1 + below(9));
    c.formula += ")/N";
    SCOPED_TRACE(::testing::PrintToString(c));
    const Instance dense(c);
    c.path = Path::kLinear;
    const Instance linear(c);
    const Outputs want = dense.reference();
    const Outputs a = linear_bound(linear, want, c.dtype);
    const Outputs b = error_bound(dense, want, c.dtype);
    const Outputs x = run_linear(linear, c.dtype);
    const Outputs y = run_linear(dense, c.dtype);
    expect_all_near(x, y, a, b);
  }
}

// Cases that are cut into tasks in every way there is.
std::vector<Case> parallel_cases(const std::string& formula, int turn) {
  std::vector<Case> list(5, Case{.d = 7,
                                 .e = 20,
                                 .formula = formula,
                                 .dtype = kTypes[turn % 8].dtype,
                                 .compute = kTypes[turn % 8].compute,
                                 .path = Path::kLinear});
  list[0].n = 400, list[0].m = 410, list[0].chunk = 48;
  list[0].causal = Causal::kFirst;
  list[1].batch = 3, list[1].heads = 4, list[1].kv_heads = 2;
  list[1].n = 65, list[1].m = 70, list[1].mask = Extra::kPadding;
  list[2].q_lengths = {3, 300, 0, 40}, list[2].k_lengths = {50, 290, 7, 1};
  list[2].heads = 2, list[2].causal = Causal::kLast;
  list[3].n = 700, list[3].m = 300, list[3].heads = 2;
  // Several groups of features at once.
  list[4].n = list[4].m = 200, list[4].d = 14, list[4].causal = Causal::kLast;
  return list;
}

TEST_P(LinearProperty, ThreadsDoNotChangeABit) {
  for (const Case& c : parallel_cases(formula(), GetParam())) {
    SCOPED_TRACE(::testing::PrintToString(c));
    const Instance instance(c);
    const Outputs want = run_linear(instance, c.dtype);
    expect_same_on_threads(want, [&](Parallel& parallel) {
      return run_linear(instance, c.dtype, parallel);
    });
  }
}

TEST_P(LinearProperty, EverySubsetOfTheGradients) {
  for (const Causal causal : {Causal::kNone, Causal::kLast}) {
    const Case c{.heads = 4,
                 .kv_heads = 2,
                 .n = 50,
                 .m = 140,
                 .d = 9,
                 .e = 21,
                 .formula = formula(),
                 .causal = causal,
                 .strided = true,
                 .path = Path::kLinear,
                 .chunk = 48};
    const Instance instance(c);
    for_each_target(supported_targets(), [&](const std::string&) {
      const Outputs all = run_linear(instance, c.dtype);
      expect_every_subset(instance, c.dtype, all);
    });
  }
}

TEST_P(LinearProperty, OutputIsReadForSumAlone) {
  for (const Causal causal : {Causal::kNone, Causal::kFirst}) {
    const Case c{.n = 60,
                 .m = 70,
                 .formula = formula(),
                 .causal = causal,
                 .path = Path::kLinear,
                 .chunk = 48};
    const Instance instance(c);
    if (instance.config().activation.divisor == Divisor::kSum) return;
    SerialParallel serial;
    const Outputs want = run_linear(instance, c.dtype);
    Outputs got = instance.outputs(c.dtype);
    std::vector<std::byte> room(
        attention_backward_workspace(instance.inputs(), instance.config(), 1));
    attention_backward(instance.inputs(), instance.config(),
                       {instance.d_o.tensor, {}, want.rows}, got.gradients(),
                       room, serial);
    expect_same_gradients(got, want);
  }
}

// Removed keys are taken as zeros: what they hold changes not a bit. Inside a
// chunk the dense kernels want it to be finite.
TEST_P(LinearProperty, RemovedKeysMayHoldAnything) {
  for (const Causal causal : {Causal::kNone, Causal::kFirst, Causal::kLast}) {
    for (const double junk : {1e30, -1e30, kInf, -kInf, kNaN}) {
      if (causal != Causal::kNone && !std::isfinite(junk)) continue;
      const Case c{.batch = 2,
                   .heads = 2,
                   .n = 100,
                   .m = 110,
                   .d = 5,
                   .e = 6,
                   .formula = formula(),
                   .causal = causal,
                   .mask = Extra::kPadding,
                   .path = Path::kLinear,
                   .chunk = 48};
      SCOPED_TRACE(::testing::PrintToString(c) + " " + std::to_string(junk));
      const Instance clean(c);
      Instance dirty(c);
      const auto removed = [&](const Extents& x) {
        return clean.mask[static_cast<std::size_t>(x[0] * c.m + x[2])] == 0;
      };
      for (Buffer* b : {&dirty.k, &dirty.v})
        for_each_index(b->tensor.size, [&](const Extents& x) {
          if (removed(x)) b->set(x, junk);
        });
      for_each_target(supported_targets(), [&](const std::string&) {
        const Outputs got = run_linear(dirty, c.dtype);
        expect_same_bits(got, run_linear(clean, c.dtype));
        for (const Buffer* b : {&got.dk, &got.dv}) {
          std::int64_t wrong = 0;
          for_each_index(b->tensor.size, [&](const Extents& x) {
            if (removed(x) && at(b->tensor, x) != 0) ++wrong;
          });
          EXPECT_EQ(wrong, 0);
        }
      });
    }
  }
}

TEST_P(LinearProperty, NanComesOutAsNan) {
  for (const Causal causal : {Causal::kNone, Causal::kLast}) {
    const Case c{.n = 60,
                 .m = 60,
                 .d = 5,
                 .e = 6,
                 .formula = formula(),
                 .causal = causal,
                 .path = Path::kLinear,
                 .chunk = 48};
    SCOPED_TRACE(::testing::PrintToString(c));
    const bool constant = Instance(c).config().activation.degree == 0;
    for_each_target(supported_targets(), [&](const std::string&) {
      Instance value(c);
      value.v.set({0, 0, 0, 3}, kNaN);
      expect_nan_where(run_linear(value, c.dtype).o,
                       [](const Extents& x) { return x[3] == 3; });
      Instance query(c);
      query.q.set({0, 0, 7, 4}, kNaN);
      if (!constant)
        expect_nan_where(run_linear(query, c.dtype).o,
                         [](const Extents& x) { return x[2] == 7; });
      Instance gradient(c);
      gradient.d_o.set({0, 0, 59, 1}, kNaN);
      const Outputs out = run_linear(gradient, c.dtype);
      expect_nan_where(out.dv, [](const Extents& x) { return x[3] == 1; });
      if (!constant)
        expect_nan_where(out.dq, [](const Extents& x) { return x[2] == 59; });
    });
  }
}

}  // namespace
}  // namespace polyattn::test
