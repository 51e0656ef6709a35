// Dense attention, forward: the tasks of a call.
#if defined(POLYATTN_KERNELS_DENSE_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_DENSE_FORWARD_INL_H_
#undef POLYATTN_KERNELS_DENSE_FORWARD_INL_H_
#else
#define POLYATTN_KERNELS_DENSE_FORWARD_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/kernels/dense/forward_block-inl.h"
#include "core/kernels/prefetch.h"
#include "core/kernels/tile-inl.h"
#include "core/plan.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

// A block of queries of a head: what a task does one after the other.
struct Unit {
  std::int64_t head, block;

  // Late blocks of a causal sequence are the long ones: they go first.
  Unit(const ForwardPlan& plan, std::int64_t number)
      : head(number / plan.blocks),
        block(plan.blocks - 1 - number % plan.blocks) {}
};

// What a unit will read and write first, to be fetched during the one before.
template <typename T>
Prefetcher PrefetchUnit(const Problem& p, const ForwardPlan& plan,
                        const AttentionResults& results, const Unit& unit,
                        const Unit& before) {
  const std::int64_t h = unit.head % p.heads;
  const Sequence seq = p.sequence(unit.head / p.heads);
  const std::int64_t begin = unit.block * plan.block_rows();
  const std::int64_t rows = std::min(plan.block_rows(), seq.n - begin);
  Prefetcher next;
  next.AddRows(p.in.q, seq.batch, h, seq.q_begin + begin, rows);
  const KeyRange seen =
      rows > 0 ? p.keys_of_any(seq, begin, rows) : KeyRange{0, 0};
  if (unit.head != before.head || p.windowed()) {
    const std::int64_t first = seq.k_begin + seen.begin;
    const std::int64_t keys = std::min(seen.count(), plan.k_block);
    next.AddRows(p.in.k, seq.batch, p.kv_head(h), first, keys);
    next.AddRows(p.in.v, seq.batch, p.kv_head(h), first, keys);
  }
  next.AddRows(results.o, seq.batch, h, seq.q_begin + begin, rows);
  // As many blocks of keys as the unit before is likely to have.
  const std::int64_t k_blocks =
      ceil_div(p.windowed() ? seen.count() : seq.m, plan.k_block);
  next.Spread(plan.block_strips * k_blocks * p.e / kTileRows<kStripVectors>);
  return next;
}

// Workers take tasks by turns, so that the next task of this one is likely the
// `workers`-th after it.
template <typename T>
void RunForwardTask(const Problem& p, const ForwardPlan& plan,
                    const AttentionResults& results,
                    const ForwardStorage<T>& storage, std::int64_t task,
                    int worker, int workers) {
  const ForwardScratch<T> scratch = storage.rooms.of(worker);
  ForwardBlock<T> run(p, plan, results, storage.panels, scratch);
  const std::int64_t all = plan.all_units(p);
  const std::int64_t first = task * plan.units;
  const std::int64_t end = std::min(first + plan.units, all);
  for (std::int64_t number = first; number < end; ++number) {
    const Unit unit(plan, number);
    const std::int64_t after =
        number + 1 < end ? number + 1 : first + workers * plan.units;
    Prefetcher next;
    if (after < all)
      next = PrefetchUnit<T>(p, plan, results, Unit(plan, after), unit);
    storage.stats[unit.head * plan.blocks + unit.block] =
        run.Run(unit.head / p.heads, unit.head % p.heads, unit.block, next);
  }
}

template <typename T>
void RunForward(const Problem& p, const AttentionResults& results,
                std::byte* workspace, Parallel& parallel) {
  const ForwardPlan plan = plan_forward(p, kStrip<T>);
  Arena arena(workspace);
  const ForwardStorage<T> storage(arena, p, plan, parallel.workers());
  FillSharedPanels(p, storage, parallel);
  parallel.run(plan.tasks(p), [&](std::int64_t task, int worker) {
    RunForwardTask(p, plan, results, storage, task, worker, parallel.workers());
  });
  for (std::size_t head = 0; head < results.stats.size(); ++head)
    results.stats[head] = add_stats({storage.stats + head * plan.blocks,
                                     static_cast<std::size_t>(plan.blocks)});
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#endif
