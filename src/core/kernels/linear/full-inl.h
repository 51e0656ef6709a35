// Attention in linear time where every query sees every key (that its mask
// keeps).
#if defined(POLYATTN_KERNELS_LINEAR_FULL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_LINEAR_FULL_INL_H_
#undef POLYATTN_KERNELS_LINEAR_FULL_INL_H_
#else
#define POLYATTN_KERNELS_LINEAR_FULL_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "core/kernels/linear/call-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

// Blocks of the longest sequence.
inline std::int64_t BlocksOf(const LinearPlan& plan, std::int64_t rows) {
  return (rows + plan.block - 1) / plan.block;
}

template <typename T>
void FullOutputs(const LinearCall<T>& call, std::int64_t slot,
                 const HeadOf& head, std::int64_t block, int worker) {
  const LinearTask<T> task(call, worker);
  const LinearScratch<T>& w = task.w;
  const StatePart<T> part = task.Whole(slot, 0);
  const std::int64_t seen = call.storage.seen[slot * (call.plan.round + 1)];
  const std::int64_t end = std::min((block + 1) * call.plan.block, head.seq.n);
  for (std::int64_t i = block * call.plan.block; i < end; i += kStripTokens) {
    const std::int64_t count = std::min(kStripTokens, end - i);
    task.rows.LoadQueries(head, i, count, w.strip_x, kStripTokens);
    std::fill_n(w.strip_o, kStripTokens * w.row_width, T{0});
    ApplyState(call.plan, part, count, w, w.strip_o, w.row_width);
    for (std::int64_t r = 0; r < count; ++r)
      task.EndRow(head, i + r, seen, w.strip_o + r * w.row_width);
  }
}

template <typename T>
void FullForward(const LinearCall<T>& call, std::int64_t first,
                 std::int64_t slots, Parallel& parallel) {
  const LinearPlan& plan = call.plan;
  parallel.run(slots * plan.groups, [&](std::int64_t number, int worker) {
    const LinearTask<T> task(call, worker);
    const std::int64_t slot = number / plan.groups;
    const HeadOf head = call.head(first + slot, 0);
    const StatePart<T> part = task.Group(slot, 0, number % plan.groups);
    if (number % plan.groups == 0)
      call.storage.seen[slot * (plan.round + 1)] =
          CountKept(call.p, head, 0, head.seq.m);
    task.Clear(part);
    task.AddKeys(part, head, 0, head.seq.m);
  });
  const std::int64_t blocks = BlocksOf(plan, call.p.n);
  const std::int64_t members = call.storage.members;
  parallel.run(slots * members * blocks, [&](std::int64_t number, int worker) {
    const std::int64_t slot = number / (members * blocks);
    FullOutputs(call, slot, call.head(first + slot, number / blocks % members),
                number % blocks, worker);
  });
}

template <typename T>
void FullQueryGrads(const LinearCall<T>& call, std::int64_t slot,
                    const HeadOf& head, std::int64_t block, int worker) {
  const LinearTask<T> task(call, worker);
  const LinearScratch<T>& w = task.w;
  const StatePart<T> part = task.Whole(slot, 0);
  const T scale = static_cast<T>(call.p.scale);
  const std::int64_t end = std::min((block + 1) * call.plan.block, head.seq.n);
  for (std::int64_t i = block * call.plan.block; i < end; i += kStripTokens) {
    const std::int64_t count = std::min(kStripTokens, end - i);
    task.rows.LoadGradColumns(head, *call.back, i, count);
    task.rows.LoadQueries(head, i, count, w.strip_x, kStripTokens);
    std::fill_n(w.strip_dx, call.p.d * kStripTokens, T{0});
    StateGradient(call.plan, part, count, w, w.strip_dx);
    task.rows.ToRows(w.strip_dx, call.p.d, count);
    for (std::int64_t r = 0; r < count; ++r)
      task.WriteRow(*call.out->dq, head.seq.batch, head.query,
                    head.seq.q_begin + i + r, task.rows.BufferRow(r), scale);
  }
}

// dk and dv of a strip of keys, from state `which`; keys that the mask removes
// get zeros.
template <typename T>
void FullKeyStrip(const LinearCall<T>& call, const LinearTask<T>& task,
                  const StatePart<T>& part, const HeadOf& head, std::int64_t j,
                  std::int64_t count) {
  const LinearScratch<T>& w = task.w;
  task.rows.LoadKeys(head, j, count, w.strip_x, kStripTokens);
  const std::int64_t row = head.seq.k_begin + j;
  const auto write = [&](const Tensor& t, const T* from) {
    const std::uint8_t* keep = task.rows.Keep(head, j, count);
    for (std::int64_t r = 0; r < count; ++r) {
      const bool kept = keep == nullptr || keep[r] != 0;
      task.WriteRow(t, head.seq.batch, head.key, row + r,
                    from + r * w.row_width, kept ? T{1} : T{0});
    }
  };
  if (call.out->dv) {
    std::fill_n(w.strip_o, kStripTokens * w.row_width, T{0});
    ApplyState(call.plan, part, count, w, w.strip_o, w.row_width);
    write(*call.out->dv, w.strip_o);
  }
  if (call.out->dk) {
    task.rows.LoadValueColumns(head, j, count);
    std::fill_n(w.strip_dx, call.p.d * kStripTokens, T{0});
    StateGradient(call.plan, part, count, w, w.strip_dx);
    task.rows.ToRows(w.strip_dx, call.p.d, count);
    write(*call.out->dk, w.rows);
  }
}

template <typename T>
void FullKeyGrads(const LinearCall<T>& call, std::int64_t slot,
                  const HeadOf& head, std::int64_t block, int worker) {
  const LinearTask<T> task(call, worker);
  const StatePart<T> part = task.Whole(slot, 1);
  const std::int64_t end = std::min((block + 1) * call.plan.block, head.seq.m);
  for (std::int64_t j = block * call.plan.block; j < end; j += kStripTokens)
    FullKeyStrip(call, task, part, head, j, std::min(kStripTokens, end - j));
}

template <typename T>
void FullBackward(const LinearCall<T>& call, std::int64_t first,
                  std::int64_t slots, Parallel& parallel) {
  const LinearPlan& plan = call.plan;
  const bool by_queries = call.out->dq.has_value();
  const bool by_keys = call.out->dk || call.out->dv;
  const std::int64_t members = call.storage.members;
  parallel.run(slots * plan.groups, [&](std::int64_t number, int worker) {
    const LinearTask<T> task(call, worker);
    const std::int64_t slot = number / plan.groups;
    if (by_queries) {
      const HeadOf head = call.head(first + slot, 0);
      const StatePart<T> part = task.Group(slot, 0, number % plan.groups);
      task.Clear(part);
      task.AddKeys(part, head, 0, head.seq.m);
    }
    if (!by_keys) return;
    const StatePart<T> part = task.Group(slot, 1, number % plan.groups);
    task.Clear(part);
    for (std::int64_t member = 0; member < members; ++member) {
      const HeadOf head = call.head(first + slot, member);
      task.AddQueries(part, head, 0, head.seq.n);
    }
  });
  const std::int64_t q_blocks = by_queries ? BlocksOf(plan, call.p.n) : 0;
  const std::int64_t k_blocks = by_keys ? BlocksOf(plan, call.p.m) : 0;
  const std::int64_t each = members * q_blocks + k_blocks;
  parallel.run(slots * each, [&](std::int64_t number, int worker) {
    const std::int64_t slot = number / each, rest = number % each;
    if (rest < k_blocks) {
      FullKeyGrads(call, slot, call.head(first + slot, 0), rest, worker);
    } else {
      const std::int64_t q = rest - k_blocks;
      FullQueryGrads(call, slot, call.head(first + slot, q / q_blocks),
                     q % q_blocks, worker);
    }
  });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#endif
