// Dense attention, forward: the tasks of a call.
#if defined(POLYATTN_KERNELS_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_FORWARD_INL_H_
#undef POLYATTN_KERNELS_FORWARD_INL_H_
#else
#define POLYATTN_KERNELS_FORWARD_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/kernels/forward_block-inl.h"
#include "core/kernels/prefetch.h"
#include "core/kernels/tile-inl.h"
#include "core/plan.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

// What block 0 of a head is going to read and write.
template <typename T>
Prefetcher PrefetchHead(const Problem& p, const ForwardPlan& plan,
                        const AttentionResults& results, std::int64_t head) {
  const std::int64_t b = head / p.heads, h = head % p.heads;
  const Sequence seq = p.sequence(b);
  Prefetcher next;
  const auto add = [&](const ConstTensor& t, std::int64_t at, std::int64_t row,
                       std::int64_t rows) {
    const auto element = static_cast<std::int64_t>(size_of(t.dtype));
    const auto* data = static_cast<const std::byte*>(t.data);
    next.Add(data + row_offset(t.stride, seq.batch, at, row) * element, rows,
             t.size[3] * element, t.stride[2] * element);
  };
  add(p.in.q, h, seq.q_begin, seq.n);
  add(p.in.k, p.kv_head(h), seq.k_begin, seq.m);
  add(p.in.v, p.kv_head(h), seq.k_begin, seq.m);
  add(results.o, h, seq.q_begin, seq.n);
  const std::int64_t strips = (seq.n + kStrip<T> - 1) / kStrip<T>;
  const std::int64_t tiles = (seq.m + p.e) / kTileRows<kStripVectors>;
  const std::int64_t k_blocks = (seq.m + plan.k_block - 1) / plan.k_block;
  next.Spread(strips * tiles * std::max<std::int64_t>(k_blocks, 1));
  return next;
}

// One task: a block of a long head, or some short heads.
template <typename T>
void RunForwardTask(const Problem& p, const ForwardPlan& plan,
                    const AttentionResults& results,
                    const ForwardStorage<T>& storage, std::int64_t task,
                    int worker) {
  const ForwardScratch<T> scratch = storage.rooms.of(worker);
  ForwardBlock<T> run(p, plan, results, scratch);
  // Late blocks of a causal sequence are the long ones: they go first.
  const std::int64_t block = plan.blocks - 1 - task % plan.blocks;
  const std::int64_t first = task / plan.blocks * plan.heads;
  const std::int64_t end = std::min(first + plan.heads, p.batch * p.heads);
  for (std::int64_t head = first; head < end; ++head) {
    Prefetcher next;
    const bool more = head + 1 < end;
    if (more) next = PrefetchHead<T>(p, plan, results, head + 1);
    storage.stats[head * plan.blocks + block] =
        run.Run(head / p.heads, head % p.heads, block, more ? &next : nullptr);
  }
}

template <typename T>
void RunForward(const Problem& p, const AttentionResults& results,
                std::byte* workspace, Parallel& parallel) {
  const ForwardPlan plan = plan_forward(p, kStrip<T>);
  Arena arena(workspace);
  const ForwardStorage<T> storage(arena, p, plan, parallel.workers());
  parallel.run(plan.tasks(p), [&](std::int64_t task, int worker) {
    RunForwardTask(p, plan, results, storage, task, worker);
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
