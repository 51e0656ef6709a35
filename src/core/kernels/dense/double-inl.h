// The double backward: the grid of backward, walked by DoubleTile, after a walk
// for the sums of the rows where `sum` asks for one. Rounds and accumulators
// are those of plan.h.
#if defined(POLYATTN_KERNELS_DENSE_DOUBLE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_DENSE_DOUBLE_INL_H_
#undef POLYATTN_KERNELS_DENSE_DOUBLE_INL_H_
#else
#define POLYATTN_KERNELS_DENSE_DOUBLE_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "core/kernels/dense/backward-inl.h"
#include "core/kernels/dense/double_tile-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

// The accumulators of one pair: dk and dv as backward has them, dq and d_o in
// strips.
template <typename T>
class DoublePairSums {
 public:
  DoublePairSums(const DoubleCall<T>& call, const DoubleAccumulators<T>& sums,
                 std::int64_t pair)
      : call_(call),
        p_(call.p),
        sums_(sums),
        keys_(call.sums, sums, pair),
        b_(pair / p_.kv_heads),
        first_head_(pair % p_.kv_heads * Group()),
        seq_(p_.sequence(b_)) {}

  const PairSums<T>& keys() const { return keys_; }

  void Clear(std::int64_t chunk) const {
    keys_.Clear(chunk);
    const std::int64_t rows = call_.plan.q_chunk;
    for (std::int64_t m = 0; m < Group(); ++m) {
      const std::int64_t row = m * sums_.head_rows + chunk * rows;
      std::fill_n(sums_.dq + row * p_.d, rows * p_.d, T{0});
      std::fill_n(sums_.d_o + row * p_.e, rows * p_.e, T{0});
    }
  }

  void Write(std::int64_t chunk, const RowBuffer<T>& buffer) const {
    keys_.Write(chunk);
    const Range q = ChunkRange(chunk, call_.plan.q_chunk, seq_.n);
    for (std::int64_t m = 0; m < Group(); ++m)
      for (std::int64_t i = q.begin; i < q.end; i += kStrip<T>)
        WriteStrip(m, i, std::min<std::int64_t>(kStrip<T>, q.end - i), buffer);
  }

 private:
  std::int64_t Group() const { return p_.heads / p_.kv_heads; }

  void WriteStrip(std::int64_t member, std::int64_t i, std::int64_t rows,
                  const RowBuffer<T>& buffer) const {
    const std::int64_t h = first_head_ + member;
    const std::int64_t row = member * sums_.head_rows + i;
    const auto write = [&](const Tensor& out, const T* from, const T* scale) {
      UnpackColumns<T>(
          from + row * out.size[3], out.size[3], rows, scale, buffer,
          {&out, row_offset(out.stride, seq_.batch, h, seq_.q_begin + i)},
          false);
    };
    alignas(64) T scale[kMaxStrip] = {};
    if (call_.out.dq) {
      std::fill_n(scale, kMaxStrip, static_cast<T>(p_.scale));
      write(*call_.out.dq, sums_.dq, scale);
    }
    if (!call_.out.d_o) return;
    const double factor = call_.params.gain * Dropper<T>(p_).factor();
    for (std::int64_t r = 0; r < rows; ++r)
      scale[r] = static_cast<T>(
          call_.in.rows[p_.row_index(b_, h, i + r)].scale * factor);
    write(*call_.out.d_o, sums_.d_o, scale);
  }

  const DoubleCall<T>& call_;
  const Problem& p_;
  const DoubleAccumulators<T>& sums_;
  const PairSums<T> keys_;
  const std::int64_t b_, first_head_;
  const Sequence seq_;
};

template <typename T>
void FindSums(const DoubleCall<T>& call, const DoubleStorage<T>& storage,
              Parallel& parallel) {
  const Problem& p = call.p;
  const std::int64_t blocks = call.plan.blocks;
  parallel.run(p.batch * p.heads * blocks, [&](std::int64_t task, int worker) {
    const DoubleScratch<T> scratch = storage.rooms.of(worker);
    const std::int64_t head = task / blocks, h = head % p.heads;
    DoubleTile<T>(call, scratch, storage,
                  head / p.heads * p.kv_heads + p.kv_head(h))
        .FindSums(h, task % blocks * call.plan.q_step);
  });
}

// Every pair by one worker, as RunWholePairs() of backward.
template <typename T>
void RunWholePairs(const DoubleCall<T>& call, const DoubleStorage<T>& storage,
                   Parallel& parallel) {
  const DoublePlan& plan = call.plan;
  const std::int64_t tasks = ceil_div(plan.all_lines(), plan.lines);
  parallel.run(tasks, [&](std::int64_t task, int worker) {
    const DoubleAccumulators<T> sums = storage.slots.of(worker);
    const DoubleScratch<T> scratch = storage.rooms.of(worker);
    for (PairsOfTask at(plan, call.p.kv_heads, task); !at.done();
         at = at.next()) {
      const DoublePairSums<T> totals(call, sums, at.pair());
      totals.Clear(0);
      DoubleTile<T>(call, scratch, storage, at.pair())
          .Run(sums, totals.keys(), 0, 0);
      totals.Write(0, {scratch.rows, scratch.row_width});
    }
  });
}

// Pairs `first` .. `first + count - 1`, each by many workers.
template <typename T>
void RunInRounds(const DoubleCall<T>& call, const DoubleStorage<T>& storage,
                 std::int64_t first, std::int64_t count, Parallel& parallel) {
  const std::int64_t chunks = call.plan.chunks;
  const auto slot_of = [&](std::int64_t task) {
    return storage.slots.of(static_cast<int>(task / chunks));
  };
  parallel.run(count * chunks, [&](std::int64_t task, int) {
    const DoubleAccumulators<T> sums = slot_of(task);
    DoublePairSums<T>(call, sums, first + task / chunks).Clear(task % chunks);
  });
  for (std::int64_t round = 0; round < chunks; ++round) {
    parallel.run(count * chunks, [&](std::int64_t task, int worker) {
      const DoubleAccumulators<T> sums = slot_of(task);
      const DoubleScratch<T> scratch = storage.rooms.of(worker);
      const std::int64_t pair = first + task / chunks, k_chunk = task % chunks;
      DoubleTile<T>(call, scratch, storage, pair)
          .Run(sums, PairSums<T>(call.sums, sums, pair),
               call.plan.query_chunk(round, k_chunk), k_chunk);
    });
  }
  parallel.run(count * chunks, [&](std::int64_t task, int worker) {
    const DoubleAccumulators<T> sums = slot_of(task);
    const DoubleScratch<T> scratch = storage.rooms.of(worker);
    DoublePairSums<T>(call, sums, first + task / chunks)
        .Write(task % chunks, {scratch.rows, scratch.row_width});
  });
}

template <typename T>
void RunDoubleBackward(const Problem& p, const AttentionDoubleInputs& inputs,
                       const AttentionDoubleGradients& gradients,
                       std::byte* workspace, Parallel& parallel) {
  const DoublePlan plan = plan_double(p, inputs, kStrip<T>);
  Arena arena(workspace);
  const DoubleStorage<T> storage(arena, p, plan, parallel.workers());
  const WeightParams<T> params = make_weight_params<T>(p.activation);
  const AttentionBackwardInputs none = {};
  const AttentionGradients rest = {
      .dk = gradients.dk, .dv = gradients.dv, .d_bias = gradients.d_bias};
  const BackwardCall<T> sums = {p, plan, none, rest, params};
  const DoubleCall<T> call = {p, plan, inputs, gradients, sums, params};
  FillSharedPanels(p, storage, parallel);
  ClearBiasSums(sums, storage.bias, parallel);
  if (plan.sums_first) FindSums(call, storage, parallel);
  if (plan.chunks == 1) {
    RunWholePairs(call, storage, parallel);
  } else {
    const std::int64_t pairs = plan.pairs(p);
    for (std::int64_t first = 0; first < pairs; first += plan.pairs_at_once)
      RunInRounds(call, storage, first,
                  std::min(plan.pairs_at_once, pairs - first), parallel);
  }
  WriteBiasSums(sums, storage, parallel);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#endif
