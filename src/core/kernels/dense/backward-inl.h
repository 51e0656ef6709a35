// Dense attention, backward: the tasks of a call. The grid that they walk is
// that of plan.h; what a tile of it does is in backward_tile-inl.h.
#if defined(POLYATTN_KERNELS_DENSE_BACKWARD_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_DENSE_BACKWARD_INL_H_
#undef POLYATTN_KERNELS_DENSE_BACKWARD_INL_H_
#else
#define POLYATTN_KERNELS_DENSE_BACKWARD_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/kernels/dense/backward_sums-inl.h"
#include "core/kernels/dense/backward_tile-inl.h"
#include "core/kernels/dense/bias_sums-inl.h"
#include "core/kernels/panels-inl.h"
#include "core/kernels/prefetch.h"
#include "core/plan.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

// The pairs that one task of RunWholePairs takes, in their order: a few lines,
// each of the pairs that add to one part of one family's bias.
class PairsOfTask {
 public:
  PairsOfTask(const BackwardPlan& plan, std::int64_t kv_heads,
              std::int64_t task)
      : plan_(&plan.bias),
        kv_heads_(kv_heads),
        line_(task * plan.lines),
        end_(std::min(line_ + plan.lines, plan.all_lines())),
        member_(line_ % plan_->parts) {
    Settle();
  }

  bool done() const { return line_ >= end_; }
  std::int64_t pair() const {
    return plan_->pair_of(line_ / plan_->parts, member_, kv_heads_);
  }
  PairsOfTask next() const {
    PairsOfTask after = *this;
    after.member_ += plan_->parts;
    after.Settle();
    return after;
  }

 private:
  void Settle() {
    while (member_ >= plan_->members && line_ < end_)
      member_ = ++line_ % plan_->parts;
  }

  const BiasPlan* plan_;
  std::int64_t kv_heads_, line_, end_, member_;
};

// What a pair will read and write, to be fetched during the one before, if it
// fits into the second-level cache beside that.
template <typename T>
Prefetcher PrefetchPair(const BackwardCall<T>& call, std::int64_t pair) {
  constexpr std::int64_t kMostBytes = 384 * 1024;
  const Problem& p = call.p;
  const Sequence seq = p.sequence(pair / p.kv_heads);
  const std::int64_t g = pair % p.kv_heads, group = p.heads / p.kv_heads;
  const std::int64_t elements =
      group * seq.n * (2 * p.d + p.e) + 2 * seq.m * (p.d + p.e);
  Prefetcher next;
  if (elements * static_cast<std::int64_t>(sizeof(T)) > kMostBytes) return next;
  next.AddRows(p.in.k, seq.batch, g, seq.k_begin, seq.m);
  next.AddRows(p.in.v, seq.batch, g, seq.k_begin, seq.m);
  for (std::int64_t h = g * group; h < (g + 1) * group; ++h) {
    next.AddRows(p.in.q, seq.batch, h, seq.q_begin, seq.n);
    next.AddRows(call.in.d_o, seq.batch, h, seq.q_begin, seq.n);
    if (call.out.dq)
      next.AddRows(*call.out.dq, seq.batch, h, seq.q_begin, seq.n);
  }
  for (const auto& out : {call.out.dk, call.out.dv})
    if (out) next.AddRows(*out, seq.batch, g, seq.k_begin, seq.m);
  // Tiles of scores and their gradients, of dk and dv, and of dq.
  const std::int64_t strips = group * ceil_div(seq.n, call.plan.strip);
  const std::int64_t q_blocks = group * ceil_div(seq.n, call.plan.q_block);
  const std::int64_t k_blocks = ceil_div(seq.m, call.plan.k_block);
  const std::int64_t d = ceil_div(p.d, call.plan.strip);
  const std::int64_t e = ceil_div(p.e, call.plan.strip);
  next.Spread(((2 * strips + q_blocks * (d + e)) * seq.m +
               k_blocks * group * seq.n * d) /
              kTileRows<kStripVectors>);
  return next;
}

// Every pair by one worker, those that share sums of the bias one after the
// other.
template <typename T>
void RunWholePairs(const BackwardCall<T>& call,
                   const BackwardStorage<T>& storage, Parallel& parallel) {
  const BackwardPlan& plan = call.plan;
  const std::int64_t tasks = ceil_div(plan.all_lines(), plan.lines);
  // Workers take tasks by turns: which one this worker is likely to have next.
  const int workers = parallel.workers();
  const auto next_of = [&](const PairsOfTask& at, std::int64_t task) {
    const PairsOfTask after = at.next();
    return after.done() ? PairsOfTask(plan, call.p.kv_heads, task + workers)
                        : after;
  };
  parallel.run(tasks, [&](std::int64_t task, int worker) {
    const Accumulators<T> room = storage.slots.of(worker);
    const BackwardScratch<T> scratch = storage.rooms.of(worker);
    for (PairsOfTask at(plan, call.p.kv_heads, task); !at.done();
         at = at.next()) {
      const PairsOfTask after = next_of(at, task);
      const PairSums<T> sums(call, room, at.pair());
      if (!sums.overwritten()) sums.Clear(0);
      BackwardTile<T>(call, scratch, sums, storage, at.pair())
          .Run(0, 0,
               after.done() ? Prefetcher() : PrefetchPair(call, after.pair()));
      sums.Write(0);
    }
  });
}

// Pairs `first` .. `first + count - 1`, each by many workers.
template <typename T>
void RunInRounds(const BackwardCall<T>& call, const BackwardStorage<T>& storage,
                 std::int64_t first, std::int64_t count, Parallel& parallel) {
  const BackwardPlan& plan = call.plan;
  const std::int64_t chunks = plan.chunks;
  // Calls f(sums, pair, chunk, worker) for each chunk of each pair.
  const auto run = [&](const auto& f) {
    parallel.run(count * chunks, [&](std::int64_t task, int worker) {
      const std::int64_t slot = task / chunks, pair = first + slot;
      const Accumulators<T> room = storage.slots.of(static_cast<int>(slot));
      f(PairSums<T>(call, room, pair), pair, task % chunks, worker);
    });
  };
  run([](const PairSums<T>& sums, std::int64_t, std::int64_t chunk, int) {
    sums.Clear(chunk);
  });
  for (std::int64_t round = 0; round < chunks; ++round) {
    run([&](const PairSums<T>& sums, std::int64_t pair, std::int64_t k_chunk,
            int worker) {
      const BackwardScratch<T> scratch = storage.rooms.of(worker);
      BackwardTile<T>(call, scratch, sums, storage, pair)
          .Run(plan.query_chunk(round, k_chunk), k_chunk);
    });
  }
  run([](const PairSums<T>& sums, std::int64_t, std::int64_t chunk, int) {
    sums.Write(chunk);
  });
}

template <typename T>
void RunBackward(const Problem& p, const AttentionBackwardInputs& inputs,
                 const AttentionGradients& gradients, std::byte* workspace,
                 Parallel& parallel) {
  const BackwardPlan plan = plan_backward(p, kStrip<T>);
  Arena arena(workspace);
  const BackwardStorage<T> storage(arena, p, plan, parallel.workers());
  const BackwardCall<T> call = {p, plan, inputs, gradients,
                                make_weight_params<T>(p.activation)};
  FillSharedPanels(p, storage, parallel);
  ClearBiasSums(call, storage.bias, parallel);
  if (plan.chunks == 1) {
    RunWholePairs(call, storage, parallel);
  } else {
    const std::int64_t pairs = plan.pairs(p);
    for (std::int64_t first = 0; first < pairs; first += plan.pairs_at_once)
      RunInRounds(call, storage, first,
                  std::min(plan.pairs_at_once, pairs - first), parallel);
  }
  WriteBiasSums(call, storage, parallel);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#endif
