// The causal linear path: chunks and rounds of them, against the reference and
// against each other.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/arena.h"
#include "core/linear_cases.h"
#include "core/linear_dense.h"
#include "core/linear_plan.h"
#include "core/plan.h"

namespace polyattn::test {
namespace {

class LinearCausal : public EveryLinearFormula {};

INSTANTIATE_TEST_SUITE_P(Formula, LinearCausal,
                         ::testing::Range(0, kLinearFormulaCount));

// Queries and keys that begin or end in the middle of a chunk, at its edge, or
// some chunks apart.
TEST_P(LinearCausal, LengthsAroundChunks) {
  struct Shape {
    std::int64_t n, m, chunk;
  };
  constexpr Shape kShapes[] = {{47, 47, 48},   {48, 48, 48},   {49, 49, 48},
                               {96, 96, 96},   {97, 97, 96},   {95, 95, 96},
                               {150, 100, 48}, {100, 150, 48}, {1, 150, 48},
                               {150, 1, 48},   {200, 104, 96}, {104, 200, 96},
                               {144, 48, 48},  {48, 144, 48},  {290, 290, 288},
                               {200, 0, 48},   {0, 200, 48},   {145, 146, 1}};
  int turn = GetParam();
  for (const Shape& shape : kShapes) {
    for (const Causal causal : {Causal::kFirst, Causal::kLast}) {
      if (++turn % (light() ? 12 : 3) != 0) continue;
      const Case c{.heads = turn % 2 == 0 ? 2 : 1,
                   .n = shape.n,
                   .m = shape.m,
                   .d = turn % 4 == 0 ? 16 : 3,
                   .e = turn % 5 == 0 ? 17 : 4,
                   .formula = formula(),
                   .causal = causal,
                   .mask = turn % 3 == 0 ? Extra::kPadding : Extra::kAbsent,
                   .dtype = kTypes[turn % 8].dtype,
                   .compute = kTypes[turn % 8].compute,
                   .strided = turn % 7 == 0,
                   .chunk = shape.chunk};
      expect_linear(c, targets_for(c));
    }
  }
}

TEST_P(LinearCausal, ChunksDoNotMatter) {
  Case c{.batch = 2,
         .heads = 2,
         .n = 310,
         .m = 330,
         .d = 6,
         .e = 5,
         .formula = formula(),
         .causal = GetParam() % 2 == 0 ? Causal::kFirst : Causal::kLast,
         .mask = Extra::kPadding,
         .path = Path::kLinear};
  const Instance instance(c);
  const Outputs want = instance.reference();
  const Outputs bound = linear_bound(instance, want, c.dtype);
  for_each_target(targets_for(c), [&](const std::string&) {
    const Outputs first = run_linear(instance, c.dtype);
    expect_all_within(first, want, bound);
    for (const std::int64_t chunk : {48, 96, 288, 65536}) {
      c.chunk = chunk;
      SCOPED_TRACE(::testing::PrintToString(c));
      const Outputs other = run_linear(Instance(c), c.dtype);
      expect_all_near(other, first, bound, bound);
    }
  });
}

// Not a bit of them changes with it.
TEST_P(LinearCausal, RowsDoNotSeeTheFuture) {
  const Case c{.n = 150,
               .m = 170,
               .d = 5,
               .e = 8,
               .formula = formula(),
               .causal = GetParam() % 2 == 0 ? Causal::kFirst : Causal::kLast,
               .path = Path::kLinear,
               .chunk = 48};
  const std::int64_t ahead = c.causal == Causal::kLast ? c.m - c.n : 0;
  for_each_target(supported_targets(), [&](const std::string&) {
    const Outputs before = run_linear(Instance(c), c.dtype);
    for (const std::int64_t last : {0, 47, 48, 70, 148}) {
      Instance changed(c);
      for_each_index(changed.k.tensor.size, [&](const Extents& x) {
        if (x[2] <= last + ahead) return;
        changed.k.set(x, 100), changed.v.set({0, 0, x[2], x[3] % c.e}, -1e5);
      });
      const Outputs after = run_linear(changed, c.dtype);
      std::int64_t wrong = 0;
      for_each_index(after.o.tensor.size, [&](const Extents& x) {
        if (x[2] > last) return;
        if (at(after.o.tensor, x) != at(before.o.tensor, x)) ++wrong;
      });
      for_each_index(after.dq.tensor.size, [&](const Extents& x) {
        if (x[2] > last) return;
        if (at(after.dq.tensor, x) != at(before.dq.tensor, x)) ++wrong;
      });
      EXPECT_EQ(wrong, 0) << "elements of rows up to " << last;
    }
  });
}

// A round is 2304 tokens.
TEST(LinearCausalRounds, LongerThanARound) {
  if (light()) return;
  for (const char* formula : {"x^2/sum", "(1 - x + x^2/3 - x^4/9)/N"}) {
    for (const Causal causal : {Causal::kFirst, Causal::kLast}) {
      const Case c{.heads = 2,
                   .n = 2400,
                   .m = causal == Causal::kFirst ? 2500 : 2350,
                   .d = 4,
                   .e = 3,
                   .formula = formula,
                   .causal = causal,
                   .mask = Extra::kPadding};
      expect_linear(c, targets_for(c));
    }
  }
}

// Sequences of a ragged batch that end in different rounds.
TEST(LinearCausalRounds, SomeEndBeforeOthers) {
  if (light()) return;
  const Case c{.heads = 2,
               .d = 3,
               .e = 2,
               .formula = "(1 + x + x^2/2)/sum",
               .causal = Causal::kLast,
               .q_lengths = {30, 2500, 0, 100},
               .k_lengths = {60, 1000, 2400, 7}};
  expect_linear(c, targets_for(c));
}

template <typename T>
std::size_t dense_bytes(const Problem& p, int strip, bool backward) {
  Arena arena(nullptr);
  if (backward) {
    BackwardStorage<T>(arena, p, plan_backward(p, strip), 1);
  } else {
    ForwardStorage<T>(arena, p, plan_forward(p, strip), 1);
  }
  return arena.used() + Arena::kAlignment;
}

// What is set aside for the dense part of a chunk is enough for every number of
// queries, keys and heads that a chunk may have.
TEST(LinearCausalRoom, IsEnoughForEveryChunk) {
  for (const std::int64_t chunk : {48, 96, 288, 528, 624, 1104}) {
    for (const int strip : {2, 4, 8, 16, 32}) {
      const Instance instance(Case{.heads = 3,
                                   .n = 2000,
                                   .m = 2000,
                                   .d = 2,
                                   .e = 1,
                                   .formula = "x^2/sum",
                                   .causal = Causal::kLast,
                                   .mask = Extra::kPadding,
                                   .dtype = DType::kBF16,
                                   .chunk = chunk});
      const Problem p =
          check_problem("test", instance.inputs(), instance.config());
      for (const bool backward : {false, true}) {
        const LinearPlan plan = plan_linear(p, strip, backward ? 2 : 1);
        ASSERT_EQ(plan.chunk, chunk);
        const std::size_t room =
            dense_chunk_bytes<float>(p, plan, strip, backward);
        Problem sub = p;
        sub.heads = backward ? 3 : 1;
        std::size_t most = 0;
        for (sub.n = 1; sub.n <= chunk; sub.n += chunk > 300 ? 7 : 1)
          for (sub.m = 1; sub.m <= chunk; sub.m += 23)
            most = std::max(most, dense_bytes<float>(sub, strip, backward));
        EXPECT_LE(most, room) << chunk << ' ' << strip << ' ' << backward;
      }
    }
  }
}

}  // namespace
}  // namespace polyattn::test
