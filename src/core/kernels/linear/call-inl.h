// What the tasks of a call in linear time share.
#if defined(POLYATTN_KERNELS_LINEAR_CALL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_LINEAR_CALL_INL_H_
#undef POLYATTN_KERNELS_LINEAR_CALL_INL_H_
#else
#define POLYATTN_KERNELS_LINEAR_CALL_INL_H_
#endif

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>

#include "core/decay.h"
#include "core/kernels/linear/rows-inl.h"
#include "core/kernels/linear/state-inl.h"
#include "core/linear_plan.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

template <typename T>
struct LinearCall {
  const Problem& p;
  const LinearPlan& plan;
  const LinearStorage<T>& storage;
  // Of the two directions, the one that runs.
  const AttentionResults* results;
  const AttentionBackwardInputs* back;
  const AttentionGradients* out;
  std::atomic<std::int64_t>& non_finite;

  HeadOf head(std::int64_t pair, std::int64_t member) const {
    const std::int64_t b = pair / p.kv_heads, g = pair % p.kv_heads;
    return {b, g * storage.members + member, g, p.sequence(b)};
  }
};

// One task's hold on its worker's room.
template <typename T>
class LinearTask {
 public:
  LinearTask(const LinearCall<T>& call, int worker)
      : call_(call),
        arena_(call.storage.rooms + call.storage.room_bytes * worker),
        w(arena_, call.p, call.plan),
        rows(call.p, call.plan, w) {}
  LinearTask(const LinearTask&) = delete;
  LinearTask& operator=(const LinearTask&) = delete;

  // Causal calls only.
  ChunkScratch<T> Chunk() {
    return ChunkScratch<T>(arena_, call_.p, call_.plan,
                           call_.storage.dense_bytes);
  }

  // Those with decay only.
  FadedScratch<T> Faded() {
    return FadedScratch<T>(arena_, call_.p, call_.plan);
  }

  StatePart<T> Group(std::int64_t slot, int which, std::int64_t group) const {
    return PartOf(call_.p, call_.plan, group * call_.plan.group,
                  call_.plan.group,
                  call_.storage.slot_state(call_.plan, slot, which));
  }
  StatePart<T> Whole(std::int64_t slot, int which) const {
    return PartOf(call_.p, call_.plan, 0, call_.plan.features,
                  call_.storage.slot_state(call_.plan, slot, which));
  }
  void Clear(const StatePart<T>& part) const {
    std::fill_n(part.state, part.count * call_.plan.width, T{0});
  }

  // F(K)^T V of keys begin .. end - 1 onto the state, and F(Q)^T dO. With
  // fades, those of the tokens in turn, there is at most a chunk of them.
  void AddKeys(const StatePart<T>& part, const HeadOf& head, std::int64_t begin,
               std::int64_t end, const T* fade = nullptr) const {
    for (std::int64_t j = begin; j < end; j += call_.plan.chunk) {
      const std::int64_t count = std::min(call_.plan.chunk, end - j);
      rows.LoadKeys(head, j, count, w.x, call_.plan.chunk);
      rows.LoadValuePanels(head, j, count, fade);
      AddToState(call_.plan, part, count, w);
    }
  }
  void AddQueries(const StatePart<T>& part, const HeadOf& head,
                  std::int64_t begin, std::int64_t end,
                  const T* fade = nullptr) const {
    for (std::int64_t i = begin; i < end; i += call_.plan.chunk) {
      const std::int64_t count = std::min(call_.plan.chunk, end - i);
      rows.LoadQueries(head, i, count, w.x, call_.plan.chunk);
      rows.LoadGradPanels(head, *call_.back, i, count, fade);
      AddToState(call_.plan, part, count, w);
    }
  }

  // Decay of what a state holds. A factor of 0 clears it, whatever it holds.
  void FadeState(const StatePart<T>& part, double factor) const {
    if (factor == 0) return Clear(part);
    if (factor == 1) return;
    const T f = static_cast<T>(factor);
    const std::int64_t count = part.count * call_.plan.width;
    for (std::int64_t i = 0; i < count; ++i) part.state[i] *= f;
  }
  // w.until of keys begin .. end - 1, at most a chunk of them; returns the
  // product of all their factors.
  double FadeUntilEnd(const HeadOf& head, std::int64_t begin,
                      std::int64_t end) const {
    const DecayStorage& decay = call_.storage.decay;
    const double* factor =
        decay.factor + decay.index(head.seq, head.key, begin);
    double fade = 1;
    for (std::int64_t j = end - begin - 1; j >= 0; --j) {
      w.until[j] = static_cast<T>(fade);
      fade *= factor[j];
    }
    return fade;
  }
  // w.since of `times` times from that of key `begin` on; behind key end - 1
  // nothing fades.
  void FadeSinceBegin(const HeadOf& head, std::int64_t begin, std::int64_t end,
                      std::int64_t times) const {
    const DecayStorage& decay = call_.storage.decay;
    const double* factor =
        decay.factor + decay.index(head.seq, head.key, begin);
    double fade = 1;
    for (std::int64_t t = 0; t < times; ++t) {
      if (t < end - begin) fade *= factor[t];
      w.since[t] = static_cast<T>(fade);
    }
  }
  // The state of the keys goes on to the end of keys begin .. end - 1, at most
  // a chunk of them.
  void AdvanceKeys(const StatePart<T>& part, const HeadOf& head,
                   std::int64_t begin, std::int64_t end) const {
    if (!call_.p.decays()) return AddKeys(part, head, begin, end);
    FadeState(part, FadeUntilEnd(head, begin, end));
    AddKeys(part, head, begin, end, w.until);
  }

  // Ends output row i, which sees n keys, from its sums.
  void EndRow(const HeadOf& head, std::int64_t i, double n,
              const T* sums) const {
    const Problem& p = call_.p;
    double scale = n == 0 ? 0 : p.activation.row_scale(n);
    if (p.activation.divisor == Divisor::kSum) {
      const double z = call_.plan.sum_sign * static_cast<double>(sums[p.e]);
      // An infinite sum must not give zeros.
      scale = std::isfinite(z) ? (z > 0 ? 1 / z : 0) : NAN;
    }
    if (!call_.results->rows.empty())
      call_.results->rows[static_cast<std::size_t>(
          p.row_index(head.b, head.query, i))] = {0, scale};
    WriteRow(call_.results->o, head.seq.batch, head.query, head.seq.q_begin + i,
             sums, static_cast<T>(scale));
  }

  // A row of a result, times scale.
  void WriteRow(const Tensor& t, std::int64_t batch, std::int64_t head,
                std::int64_t row, const T* from, T scale) const {
    const std::int64_t bad = StoreRow(from, t.size[3], scale, t.data, t.dtype,
                                      row_offset(t.stride, batch, head, row));
    if (bad == 0) return;
    // What is too large for the storage type alone is right.
    for (std::int64_t c = 0; c < t.size[3]; ++c)
      if (!std::isfinite(from[c] * scale)) ++call_.non_finite;
  }
  void WriteZeros(const Tensor& t, std::int64_t batch, std::int64_t head,
                  std::int64_t begin, std::int64_t end) const {
    std::fill_n(w.rows, t.size[3], T{0});
    for (std::int64_t row = begin; row < end; ++row)
      WriteRow(t, batch, head, row, w.rows, T{1});
  }

 private:
  const LinearCall<T>& call_;
  Arena arena_;

 public:
  const LinearScratch<T> w;
  const LinearRows<T> rows;
};

// Factors and N of all pairs.
template <typename T>
void PrepareDecay(const LinearCall<T>& call, Parallel& parallel) {
  const DecayStorage& decay = call.storage.decay;
  const Problem& p = call.p;
  parallel.run(call.plan.pairs(p), [&](std::int64_t pair, int) {
    const HeadOf head = call.head(pair, 0);
    const std::int64_t at = decay.index(head.seq, head.key, 0);
    find_decay(p, head.b, head.key, decay.factor + at, decay.n + at);
    if (call.out != nullptr) std::fill_n(decay.pull + at, head.seq.m, 0);
  });
  if (call.out == nullptr) return;
  const std::int64_t rows = p.in.q.size[0] * p.heads * p.in.q.size[2];
  std::fill_n(decay.row_pull, rows, 0);
}

// Keys begin .. end - 1 that the mask keeps.
inline std::int64_t CountKept(const Problem& p, const HeadOf& head,
                              std::int64_t begin, std::int64_t end) {
  if (!p.in.mask) return end - begin;
  std::int64_t kept = 0;
  for (std::int64_t j = begin; j < end; ++j) {
    std::uint8_t keep = 0;
    LoadKeep(p, head, j, 1, &keep);
    kept += keep != 0 ? 1 : 0;
  }
  return kept;
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#endif
