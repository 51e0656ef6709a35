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
#include "core/thread_parallel.h"

namespace polyattn {
namespace {

using test::at;
using test::Buffer;
using test::Case;
using test::expect_nan_where;
using test::expect_same_bits;
using test::expect_within;
using test::Extra;
using test::for_each_index;
using test::for_each_target;
using test::Instance;
using test::kInf;
using test::kLinearFormulaCount;
using test::kLinearFormulas;
using test::kNaN;
using test::light;
using test::Outputs;
using test::run_linear;
using test::TaskOrder;
using test::ThreadParallel;

// The buffer with every value replaced by f(index).
template <typename F>
Buffer filled(const Buffer& like, const F& f) {
  const Extents& size = like.tensor.size;
  Buffer out(DType::kF64, size, contiguous_strides(size));
  for_each_index(size, [&](const Extents& x) { out.set(x, f(x)); });
  return out;
}

// Both may be off by their bounds.
void expect_near(const char* what, const Buffer& a, const Buffer& b,
                 const Buffer& a_bound, const Buffer& b_bound) {
  expect_within(what, a, b, filled(a_bound, [&](const Extents& x) {
                  return at(a_bound.tensor, x) + at(b_bound.tensor, x);
                }));
}

Outputs bound_of(const Instance& instance, DType storage) {
  return linear_bound(instance, instance.reference(), storage);
}

class LinearProperty : public ::testing::TestWithParam<int> {
 protected:
  std::string formula() const { return kLinearFormulas[GetParam()]; }
};

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
    expect_near("o", y.o, x.o, bound.o, bound.o);
    expect_near("dq", y.dq, x.dq, bound.dq, bound.dq);
    expect_near("dk", y.dk, shuffled(x.dk), dk, dk);
    expect_near("dv", y.dv, shuffled(x.dv), dv, dv);
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
    expect_near("o", entry(want.o, all.o), want.o, bound.o, bound.o);
    expect_near("dq", entry(want.dq, all.dq), want.dq, bound.dq, bound.dq);
    expect_near("dk", entry(want.dk, all.dk), want.dk, bound.dk, bound.dk);
    expect_near("dv", entry(want.dv, all.dv), want.dv, bound.dv, bound.dv);
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
    c = test::with_linear_structure(c, turn % test::kLinearStructures);
    c.chunk = 48 * below(4);
    c.dtype = test::kTypes[below(8)].dtype;
    c.compute = test::kTypes[below(8)].compute;
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
    expect_near("o", x.o, y.o, a.o, b.o);
    expect_near("dq", x.dq, y.dq, a.dq, b.dq);
    expect_near("dk", x.dk, y.dk, a.dk, b.dk);
    expect_near("dv", x.dv, y.dv, a.dv, b.dv);
  }
}

// Cases that are cut into tasks in every way there is.
std::vector<Case> parallel_cases(const std::string& formula, int turn) {
  std::vector<Case> list(5, Case{.d = 7,
                                 .e = 20,
                                 .formula = formula,
                                 .dtype = test::kTypes[turn % 8].dtype,
                                 .compute = test::kTypes[turn % 8].compute,
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
    for (const int workers : {2, 3, 7}) {
      for (const auto order : {TaskOrder::kAscending, TaskOrder::kShuffled}) {
        SCOPED_TRACE(std::to_string(workers) + " workers");
        ThreadParallel parallel(workers, order);
        expect_same_bits(run_linear(instance, c.dtype, parallel), want);
      }
    }
    DefaultParallel openmp(2);
    expect_same_bits(run_linear(instance, c.dtype, openmp), want);
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
      const Outputs fresh = instance.outputs(c.dtype);
      for (int wanted = 0; wanted < 8; ++wanted) {
        SCOPED_TRACE(wanted);
        SerialParallel serial;
        Outputs out = instance.outputs(c.dtype);
        AttentionGradients gradients = out.gradients();
        if (!(wanted & 1)) gradients.dq.reset();
        if (!(wanted & 2)) gradients.dk.reset();
        if (!(wanted & 4)) gradients.dv.reset();
        run_backward(instance, all, gradients, serial);
        EXPECT_EQ(out.dq.bytes, (wanted & 1 ? all : fresh).dq.bytes);
        EXPECT_EQ(out.dk.bytes, (wanted & 2 ? all : fresh).dk.bytes);
        EXPECT_EQ(out.dv.bytes, (wanted & 4 ? all : fresh).dv.bytes);
      }
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
    EXPECT_EQ(got.dq.bytes, want.dq.bytes);
    EXPECT_EQ(got.dk.bytes, want.dk.bytes);
    EXPECT_EQ(got.dv.bytes, want.dv.bytes);
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
}  // namespace polyattn
