// Decoding with sums over features: tokens into the sums of all key heads, and
// the sums onto the tokens of all query heads.
#if defined(POLYATTN_KERNELS_LINEAR_DECODE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_LINEAR_DECODE_INL_H_
#undef POLYATTN_KERNELS_LINEAR_DECODE_INL_H_
#else
#define POLYATTN_KERNELS_LINEAR_DECODE_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/kernels/linear/call-inl.h"
#include "core/kernels/row-inl.h"
#include "core/kernels/tile-inl.h"
#include "core/linear_plan.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

// The next `count` features of one token x[D], times w: out[count].
template <typename T>
HWY_NOINLINE void MakeTokenFeatures(FeatureCursor& cursor, std::int64_t count,
                                    const T* HWY_RESTRICT x,
                                    T* HWY_RESTRICT out) {
  const Tag<T> d;
  constexpr int L = kLanes<T>;
  while (count > 0) {
    const FeatureRun run = cursor.next(count);
    if (run.count == 0) return;
    T prefix = 1;
    for (int l = 0; l + 1 < run.degree; ++l) prefix *= x[run.prefix[l]];
    if (run.degree == 0) {
      out[0] = static_cast<T>(run.weight);
    } else {
      const T* HWY_RESTRICT from = x + run.first;
      const T factor = prefix * static_cast<T>(run.weight);
      const auto v = hn::Set(d, factor);
      std::int64_t i = 0;
      for (; i + L <= run.count; i += L)
        hn::StoreU(hn::Mul(v, hn::LoadU(d, from + i)), d, out + i);
      for (; i < run.count; ++i) out[i] = factor * from[i];
      out[0] = prefix * static_cast<T>(run.first_weight) * from[0];
    }
    out += run.count;
    count -= run.count;
  }
}

// Sums of one token of a head.
template <typename T>
void ApplyToToken(const LinearPlan& plan, const StatePart<T>& part,
                  const LinearScratch<T>& w, const T* x, T* o) {
  // Long enough that the loop over the state does not notice the blocks.
  const std::int64_t block = kFeatureBlock * plan.chunk;
  FeatureCursor cursor = part.cursor;
  for (std::int64_t f = 0; f < part.count; f += block) {
    const std::int64_t count = std::min(block, part.count - f);
    MakeTokenFeatures(cursor, count, x, w.features);
    AddRows(w.features, RowsView<T>{part.state + f * plan.width, plan.width},
            count, ceil_div(plan.columns, kLanes<T>) * kLanes<T>, o);
  }
}

// state[G, features, width] += F(K)^T V of all keys of p; with decay, it fades
// over each of them before.
template <typename T>
void RunFold(const Problem& p, T* state, std::byte* workspace,
             Parallel& parallel) {
  const LinearPlan plan = plan_linear(p, kStrip<T>, 1);
  Arena arena(workspace);
  const LinearStorage<T> storage(arena, p, plan, 0, 0, parallel.workers());
  std::atomic<std::int64_t> non_finite = 0;
  const LinearCall<T> call = {p,       plan,    storage,   nullptr,
                              nullptr, nullptr, non_finite};
  if (p.decays()) PrepareDecay(call, parallel);
  parallel.run(p.kv_heads * plan.groups, [&](std::int64_t number, int worker) {
    const LinearTask<T> task(call, worker);
    const std::int64_t g = number / plan.groups;
    const StatePart<T> part = PartOf(p, plan, number % plan.groups * plan.group,
                                     plan.group, state + g * plan.state());
    for (std::int64_t j = 0; j < p.m; j += plan.chunk)
      task.AdvanceKeys(part, call.head(g, 0), j, std::min(p.m, j + plan.chunk));
  });
}

// sums[H, N, width] = F(Q) W state.
template <typename T>
void RunApply(const Problem& p, T* state, T* sums, std::byte* workspace,
              Parallel& parallel) {
  const LinearPlan plan = plan_linear(p, kStrip<T>, 1);
  Arena arena(workspace);
  const LinearStorage<T> storage(arena, p, plan, 0, 0, parallel.workers());
  std::atomic<std::int64_t> non_finite = 0;
  const LinearCall<T> call = {p,       plan,    storage,   nullptr,
                              nullptr, nullptr, non_finite};
  parallel.run(p.heads, [&](std::int64_t h, int worker) {
    const LinearTask<T> task(call, worker);
    const LinearScratch<T>& w = task.w;
    const HeadOf head = {0, h, p.kv_head(h), p.sequence(0)};
    const StatePart<T> part =
        PartOf(p, plan, 0, plan.features, state + head.key * plan.state());
    T* o = sums + h * p.n * plan.width;
    std::fill_n(o, p.n * plan.width, T{0});
    if (p.n <= kMostSingleRows<T>) {
      for (std::int64_t i = 0; i < p.n; ++i) {
        LoadRow(p.in.q.data, p.in.q.dtype, row_offset(p.in.q.stride, 0, h, i),
                p.d, static_cast<T>(p.scale), w.rows);
        ApplyToToken(plan, part, w, w.rows, o + i * plan.width);
      }
      return;
    }
    for (std::int64_t i = 0; i < p.n; i += kStripTokens) {
      const std::int64_t count = std::min(kStripTokens, p.n - i);
      task.rows.LoadQueries(head, i, count, w.strip_x, kStripTokens);
      ApplyState(plan, part, count, w, o + i * plan.width, plan.width);
    }
  });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#endif
