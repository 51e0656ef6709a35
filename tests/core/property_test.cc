// What must hold whatever the numbers are: the kernels against themselves.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/compare_outputs.h"
#include "core/error_bound.h"
#include "core/kernel_cases.h"
#include "core/random_inputs.h"

namespace polyattn::test {
namespace {

class Property : public EveryFormula {};

INSTANTIATE_TEST_SUITE_P(Formula, Property, ::testing::Range(0, kFormulaCount));

Outputs bound_of(const Instance& instance, DType storage) {
  return error_bound(instance, instance.reference(), storage);
}

// Values are multiples of 1/64, so that the combination is exact.
TEST_P(Property, OutputIsLinearInTheValues) {
  for (const DType type : {DType::kF32, DType::kF64}) {
    const Case c{.heads = 2,
                 .n = 37,
                 .m = 150,
                 .d = 11,
                 .e = 9,
                 .formula = formula(),
                 .causal = Causal::kLast,
                 .dtype = type,
                 .compute = type};
    Instance x(c), y(c), both(c);
    for_each_index(x.v.tensor.size, [&](const Extents& i) {
      const double vx = std::round(64 * at(x.v.tensor, i)) / 64;
      const double vy = std::round(64 * at(x.k.tensor, {0, 0, i[2], 0})) / 64;
      x.v.set(i, vx), y.v.set(i, vy), both.v.set(i, 2 * vx - vy / 2);
    });
    const Buffer x_bound = bound_of(x, type).o, y_bound = bound_of(y, type).o;
    const Buffer bound = bound_of(both, type).o;
    const Buffer sum_bound = filled(bound, [&](const Extents& i) {
      return at(bound.tensor, i) + 2 * at(x_bound.tensor, i) +
             at(y_bound.tensor, i) / 2;
    });
    for_each_target(supported_targets(), [&](const std::string&) {
      const Buffer ox = run_kernels(x, type).o, oy = run_kernels(y, type).o;
      const Buffer sum = filled(bound, [&](const Extents& i) {
        return 2 * at(ox.tensor, i) - at(oy.tensor, i) / 2;
      });
      expect_within("o", run_kernels(both, type).o, sum, sum_bound);
    });
  }
}

TEST_P(Property, KeysMayComeInAnyOrder) {
  const Case c{.heads = 2,
               .kv_heads = 2,
               .n = 40,
               .m = 133,
               .d = 12,
               .e = 10,
               .formula = formula(),
               .bias = Extra::kFull};
  Instance here(c), there(c);
  const auto from = [&](const Extents& x, std::size_t which) {
    Extents to = x;
    to[which] = x[which] * 50 % c.m;  // 50 and 133 have no common factor
    return to;
  };
  const auto shuffled = [&](const Buffer& b, std::size_t which) {
    return filled(
        b, [&](const Extents& x) { return at(b.tensor, from(x, which)); });
  };
  const auto shuffle = [&](Buffer& b, const Buffer& source, std::size_t which) {
    for_each_index(b.tensor.size, [&](const Extents& x) {
      b.set(x, at(source.tensor, from(x, which)));
    });
  };
  shuffle(there.k, here.k, 2);
  shuffle(there.v, here.v, 2);
  shuffle(there.bias, here.bias, 3);
  const Outputs bound = bound_of(here, c.dtype);
  for_each_target(supported_targets(), [&](const std::string&) {
    const Outputs x = run_kernels(here, c.dtype);
    const Outputs y = run_kernels(there, c.dtype);
    expect_near("o", y.o, x.o, bound.o);
    expect_near("dq", y.dq, x.dq, bound.dq);
    expect_near("dk", y.dk, shuffled(x.dk, 2), shuffled(bound.dk, 2));
    expect_near("dv", y.dv, shuffled(x.dv, 2), shuffled(bound.dv, 2));
  });
}

// Rows up to `last`, bit by bit.
void expect_same_rows(const char* what, const Buffer& a, const Buffer& b,
                      std::int64_t last) {
  for_each_index(a.tensor.size, [&](const Extents& x) {
    if (x[2] > last) return;
    const double p = at(a.tensor, x), q = at(b.tensor, x);
    ASSERT_EQ(std::bit_cast<std::uint64_t>(p), std::bit_cast<std::uint64_t>(q))
        << what << ::testing::PrintToString(x) << ' ' << p << ' ' << q;
  });
}

TEST_P(Property, CausalRowsDoNotSeeTheFuture) {
  for (const Causal causal : {Causal::kFirst, Causal::kLast}) {
    const Case c{.n = 150,
                 .m = 170,
                 .d = 9,
                 .e = 8,
                 .formula = formula(),
                 .causal = causal};
    SCOPED_TRACE(::testing::PrintToString(c));
    const std::int64_t ahead = causal == Causal::kLast ? c.m - c.n : 0;
    for_each_target(supported_targets(), [&](const std::string&) {
      const Outputs before = run_kernels(Instance(c), c.dtype);
      for (const std::int64_t last : {0, 15, 70, 148}) {
        Instance changed(c);
        for_each_index(changed.k.tensor.size, [&](const Extents& x) {
          if (x[2] <= last + ahead) return;
          changed.k.set(x, 100), changed.v.set({0, 0, x[2], x[3] % c.e}, -1e5);
        });
        const Outputs after = run_kernels(changed, c.dtype);
        expect_same_rows("o", after.o, before.o, last);
        expect_same_rows("dq", after.dq, before.dq, last);
        for (std::int64_t i = 0; i <= last; ++i) {
          const auto row = static_cast<std::size_t>(i);
          ASSERT_EQ(after.rows[row].shift, before.rows[row].shift);
          ASSERT_EQ(after.rows[row].scale, before.rows[row].scale);
        }
      }
    });
  }
}

Buffer rows_of(const Buffer& all, std::int64_t first, std::int64_t rows) {
  Extents size = all.tensor.size;
  size[2] = rows;
  Buffer part(all.tensor.dtype, size, contiguous_strides(size));
  for_each_index(size, [&](const Extents& x) {
    part.set(x, at(all.tensor, {x[0], x[1], x[2] + first, x[3]}));
  });
  return part;
}

TEST_P(Property, RaggedIsOneCallForEachSequence) {
  const Case c{.heads = 2,
               .kv_heads = 1,
               .d = 7,
               .e = 6,
               .formula = formula(),
               .causal = Causal::kLast,
               .q_lengths = {30, 0, 65, 4},
               .k_lengths = {20, 13, 0, 140}};
  Instance ragged(c);
  const Outputs all = run_kernels(ragged, c.dtype);
  std::int64_t q = 0, k = 0;
  for (std::size_t b = 0; b < c.q_lengths.size(); ++b) {
    Case one = c;
    one.q_lengths = one.k_lengths = {};
    one.n = c.q_lengths[b], one.m = c.k_lengths[b];
    Instance alone(one);
    alone.q = rows_of(ragged.q, q, one.n);
    alone.d_o = rows_of(ragged.d_o, q, one.n);
    alone.k = rows_of(ragged.k, k, one.m);
    alone.v = rows_of(ragged.v, k, one.m);
    const Outputs want = run_kernels(alone, c.dtype);
    const Outputs bound = bound_of(alone, c.dtype);
    expect_near("o", rows_of(all.o, q, one.n), want.o, bound.o);
    expect_near("dq", rows_of(all.dq, q, one.n), want.dq, bound.dq);
    expect_near("dk", rows_of(all.dk, k, one.m), want.dk, bound.dk);
    expect_near("dv", rows_of(all.dv, k, one.m), want.dv, bound.dv);
    q += one.n, k += one.m;
  }
}

TEST_P(Property, GroupedHeadsAreRepeatedHeads) {
  const Case c{.batch = 2,
               .heads = 6,
               .kv_heads = 2,
               .n = 33,
               .m = 70,
               .d = 8,
               .e = 5,
               .formula = formula(),
               .causal = Causal::kFirst};
  Case wide = c;
  wide.kv_heads = 6;
  Instance grouped(c), repeated(wide);
  const auto copy = [](Buffer& to, const Buffer& from, std::int64_t group) {
    for_each_index(to.tensor.size, [&](const Extents& x) {
      to.set(x, at(from.tensor, {x[0], x[1] / group, x[2], x[3]}));
    });
  };
  copy(repeated.q, grouped.q, 1);
  copy(repeated.d_o, grouped.d_o, 1);
  copy(repeated.k, grouped.k, 3);
  copy(repeated.v, grouped.v, 3);
  const auto total = [](const Buffer& like, const Buffer& heads) {
    return filled(like, [&](const Extents& x) {
      double sum = 0;
      for (std::int64_t h = 3 * x[1]; h < 3 * x[1] + 3; ++h)
        sum += at(heads.tensor, {x[0], h, x[2], x[3]});
      return sum;
    });
  };
  const Outputs bound = bound_of(grouped, c.dtype);
  for_each_target(supported_targets(), [&](const std::string&) {
    const Outputs x = run_kernels(grouped, c.dtype);
    const Outputs y = run_kernels(repeated, c.dtype);
    expect_near("o", x.o, y.o, bound.o);
    expect_near("dq", x.dq, y.dq, bound.dq);
    expect_near("dk", x.dk, total(x.dk, y.dk), bound.dk);
    expect_near("dv", x.dv, total(x.dv, y.dv), bound.dv);
  });
}

// Cases that are cut into tasks in every way there is.
std::vector<Case> parallel_cases(const std::string& formula, int turn) {
  const Case base{.d = 16,
                  .e = 20,
                  .formula = formula,
                  .dtype = kTypes[turn % 8].dtype,
                  .compute = kTypes[turn % 8].compute};
  std::vector<Case> list(4, base);
  list[0].n = 400, list[0].m = 410, list[0].causal = Causal::kFirst;
  list[1].batch = 3, list[1].heads = 4, list[1].kv_heads = 2;
  list[1].n = 65, list[1].m = 70, list[1].bias = Extra::kHeads;
  list[2].q_lengths = {3, 300, 0, 40}, list[2].k_lengths = {50, 290, 7, 1};
  list[2].heads = 2, list[2].causal = Causal::kLast;
  list[3].n = 700, list[3].m = 300, list[3].heads = 2;
  if (light()) list[0].n = 270, list[0].m = 260, list[3].n = 260;
  return list;
}

TEST_P(Property, ThreadsDoNotChangeABit) {
  for (const Case& c : parallel_cases(formula(), GetParam())) {
    SCOPED_TRACE(::testing::PrintToString(c));
    const Instance instance(c);
    const Outputs want = run_kernels(instance, c.dtype);
    expect_same_on_threads(want, [&](Parallel& parallel) {
      return run_kernels(instance, c.dtype, parallel);
    });
  }
}

void expect_zero_row(const Buffer& buffer, std::int64_t i) {
  for (std::int64_t x = 0; x < buffer.tensor.size[3]; ++x)
    EXPECT_EQ(at(buffer.tensor, {0, 0, i, x}), 0);
}

TEST_P(Property, ARowOrKeyMaskedAwayGivesZeros) {
  for (const Types& types : kTypes) {
    const Case c{.n = 21,
                 .m = 18,
                 .d = 5,
                 .e = 6,
                 .formula = formula(),
                 .mask = Extra::kFull,
                 .dtype = types.dtype,
                 .compute = types.compute};
    SCOPED_TRACE(::testing::PrintToString(c));
    Instance instance(c);  // row 1 is masked away
    for (std::size_t i = 0; i < 21; ++i) instance.mask[i * 18 + 5] = 0;
    for_each_target(supported_targets(), [&](const std::string&) {
      const Outputs out = run_kernels(instance, c.dtype);
      expect_zero_row(out.o, 1);
      expect_zero_row(out.dq, 1);
      expect_zero_row(out.dk, 5);
      expect_zero_row(out.dv, 5);
      EXPECT_EQ(out.rows[1].shift, 0);
      EXPECT_EQ(out.rows[1].scale, 0);
    });
  }
}

// The 16-bit types are storage alone: what is computed is the same as for the
// same numbers in f32, and rounded once. (`sum` reads the stored output.)
TEST_P(Property, HalfPrecisionIsTheF32ResultRoundedOnce) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    Case c{.heads = 2,
           .n = 45,
           .m = 60,
           .d = 19,
           .e = 23,
           .formula = formula(),
           .causal = Causal::kFirst,
           .dtype = dtype};
    const Instance half(c);
    c.dtype = DType::kF32;
    Instance full(c);
    const auto copy = [](Buffer& to, const Buffer& from) {
      for_each_index(to.tensor.size,
                     [&](const Extents& x) { to.set(x, at(from.tensor, x)); });
    };
    copy(full.q, half.q), copy(full.k, half.k), copy(full.v, half.v);
    copy(full.d_o, half.d_o);
    const auto expect_rounded = [&](const Buffer& got, const Buffer& from) {
      Buffer want(dtype, got.tensor.size, got.tensor.stride);
      copy(want, from);
      EXPECT_TRUE(same_bits(got, want));
    };
    for_each_target(supported_targets(), [&](const std::string&) {
      const Outputs x = run_kernels(half, dtype);
      const Outputs y = run_kernels(full, DType::kF32);
      expect_rounded(x.o, y.o);
      if (half.config().activation.divisor == Divisor::kSum) return;
      expect_rounded(x.dq, y.dq);
      expect_rounded(x.dk, y.dk);
      expect_rounded(x.dv, y.dv);
    });
  }
}

TEST_P(Property, EmptySizesWork) {
  const Case base{.batch = 2,
                  .heads = 2,
                  .n = 5,
                  .m = 6,
                  .d = 3,
                  .e = 4,
                  .formula = formula(),
                  .bias = Extra::kFull};
  std::vector<Case> list(8, base);
  list[0].batch = 0, list[1].n = 0, list[2].m = 0, list[3].d = 0;
  list[4].e = 0, list[5].heads = list[5].kv_heads = 0;
  list[6].heads = 0, list[6].kv_heads = 2;
  list[7].q_lengths = {0, 2}, list[7].k_lengths = {3, 0};
  for (const Case& c : list) {
    SCOPED_TRACE(::testing::PrintToString(c));
    const Instance instance(c);
    const Outputs want = instance.reference();
    const Outputs bound = error_bound(instance, want, c.dtype);
    for_each_target(supported_targets(), [&](const std::string&) {
      const Outputs got = run_kernels(instance, c.dtype);
      expect_all_within(got, want, bound);
      expect_stats_within(got, want, bound);
    });
  }
}

// A call that a test spoils before it is made.
struct Call {
  Call()
      : instance(Case{.n = 5, .m = 7}),
        out(instance.outputs(DType::kF32)),
        fresh(instance.outputs(DType::kF32)),
        in(instance.inputs()),
        results(out.results()),
        backward(out.backward_inputs(instance.d_o.tensor)),
        gradients(out.gradients()) {
    const AttentionConfig c = instance.config();
    forward_room.resize(attention_forward_workspace(in, c, 1));
    backward_room.resize(attention_backward_workspace(in, c, 1));
  }
  void forward() {
    attention_forward(in, instance.config(), results, forward_room, serial);
  }
  void back() {
    attention_backward(in, instance.config(), backward, gradients,
                       backward_room, serial);
  }

  Instance instance;
  Outputs out, fresh;
  AttentionInputs in;
  AttentionResults results;
  AttentionBackwardInputs backward;
  AttentionGradients gradients;
  std::vector<std::byte> forward_room, backward_room;
  SerialParallel serial;
};

TEST(PropertyErrors, NothingIsWrittenWhenACallIsRefused) {
  const std::function<void(Call&)> spoilt[] = {
      [](Call& c) { c.forward_room.pop_back(), c.backward_room.pop_back(); },
      [](Call& c) { c.forward_room.clear(), c.backward_room.clear(); },
      [](Call& c) { c.in.k.size[3] = 3; },
      [](Call& c) { c.in.v.size[2] = 6; },
      [](Call& c) { c.in.q.data = nullptr; },
      [](Call& c) { c.in.q.stride[2] = -4; },
      [](Call& c) { c.results.o.size[3] = 5, c.gradients.dv->size[3] = 5; },
      [](Call& c) { c.results.o.data = c.gradients.dq->data = nullptr; },
      [](Call& c) {
        c.results.rows = c.results.rows.first(4);
        c.backward.rows = c.backward.rows.first(4);
      }};
  for (const auto& spoil : spoilt) {
    Call call;
    spoil(call);
    EXPECT_THROW(call.forward(), std::invalid_argument);
    EXPECT_THROW(call.back(), std::invalid_argument);
    expect_same_bits(call.out, call.fresh);
  }
  Call call;
  EXPECT_NO_THROW(call.forward());
  EXPECT_NO_THROW(call.back());
}

TEST(PropertyErrors, AWorkspaceOfAnyAlignmentServes) {
  for (const std::size_t off : {1, 8, 33}) {
    Call call;
    std::vector<std::byte> room(off + call.forward_room.size());
    attention_forward(call.in, call.instance.config(), call.results,
                      std::span(room).subspan(off), call.serial);
    const Outputs want = run_kernels(call.instance, DType::kF32);
    EXPECT_TRUE(same_bits(call.out.o, want.o));
  }
}

TEST(PropertyErrors, ACallWithoutWorkspaceGivesTheSame) {
  const Instance instance(Case{.heads = 3, .n = 30, .m = 40});
  Outputs got = instance.outputs(DType::kF32);
  attention_forward(instance.inputs(), instance.config(), got.results());
  attention_backward(instance.inputs(), instance.config(),
                     got.backward_inputs(instance.d_o.tensor), got.gradients());
  expect_same_bits(got, run_kernels(instance, DType::kF32));
}

}  // namespace
}  // namespace polyattn::test
