// Dense attention, backward: scores are computed again, tile by tile of the
// grid that plan.h describes. In a tile, queries are streamed in the outer loop
// and keys in the inner one; the sums of dq, dk and dv are kept in memory.
//
//   for each head of the group, for each block of queries
//     load shift and scale of its rows; delta = o . do, for `sum`
//     pack q, and do times the row scale, as strips and as panels
//     for each block of keys that some row may see
//       for each strip of queries, with those of the keys that it may see
//         s[keys, W] = k q,  g[keys, W] = v do        scores, gradients of A
//         dropout: g = 0 where a weight goes
//         s, g = weight(s), weight'(s) (g - sign(w) delta)     in place
//         dropout: s = 0 where a weight goes
//         dq[D, W] += k^T g                           along the keys
//         d_bias += g
//       dv[keys, E] += s do,  dk[keys, D] += g q      along the queries
//
// docs/kernels.md derives the gradients.
#if defined(POLYATTN_KERNELS_DENSE_BACKWARD_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_DENSE_BACKWARD_INL_H_
#undef POLYATTN_KERNELS_DENSE_BACKWARD_INL_H_
#else
#define POLYATTN_KERNELS_DENSE_BACKWARD_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/kernels/dense/backward_sums-inl.h"
#include "core/kernels/dense/bias_sums-inl.h"
#include "core/kernels/dense/dropout-inl.h"
#include "core/kernels/dense/grads-inl.h"
#include "core/kernels/pack-inl.h"
#include "core/kernels/panels-inl.h"
#include "core/kernels/prefetch.h"
#include "core/kernels/tile-inl.h"
#include "core/plan.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

// One tile of the grid of one pair.
template <typename T>
class BackwardTile {
 public:
  BackwardTile(const BackwardCall<T>& call, const BackwardScratch<T>& scratch,
               const Accumulators<T>& sums, const BackwardStorage<T>& storage,
               std::int64_t pair)
      : call_(call),
        p_(call.p),
        scratch_(scratch),
        sums_(sums),
        storage_(storage),
        dropper_(call.p),
        part_(call.plan.bias.part_of(pair, p_.kv_heads)),
        masked_(p_.in.mask || p_.in.bias),
        b_(pair / p_.kv_heads),
        g_(pair % p_.kv_heads),
        seq_(p_.sequence(b_)) {}

  // `next` takes its steps meanwhile.
  void Run(std::int64_t q_chunk, std::int64_t k_chunk,
           const Prefetcher& next = {}) {
    next_ = next;
    const Range q = ChunkRange(q_chunk, call_.plan.q_chunk, seq_.n);
    const Range k = ChunkRange(k_chunk, call_.plan.k_chunk, seq_.m);
    if (q.empty() || k.empty()) return;
    const std::int64_t group = p_.heads / p_.kv_heads;
    for (std::int64_t member = 0; member < group; ++member) {
      member_ = member;
      h_ = g_ * group + member;
      for (begin_ = q.begin; begin_ < q.end; begin_ += rows_) {
        rows_ = q.end - begin_;
        if (rows_ > call_.plan.q_block) rows_ = call_.plan.q_step;
        QueryBlock(k);
      }
    }
  }

 private:
  static constexpr std::int64_t kW = kStrip<T>;

  std::int64_t strips() const { return (rows_ + kW - 1) / kW; }
  std::int64_t strip_rows(std::int64_t s) const {
    return std::min(kW, rows_ - s * kW);
  }
  RowBuffer<T> buffer() const { return {scratch_.rows, scratch_.row_width}; }

  void QueryBlock(const Range& keys) {
    const KeyRange seen = KeyRange{keys.begin, keys.end}.within(
        p_.keys_of_any(seq_, begin_, rows_));
    if (seen.empty()) return;
    LoadRows();
    PackQueries();
    PackOutputGrads();
    for (std::int64_t j = seen.begin; j < seen.end; j += call_.plan.k_block)
      KeyBlock(j, std::min(call_.plan.k_block, seen.end - j));
  }

  RowSource Source(const ConstTensor& t, std::int64_t row) const {
    return {&t,
            row_offset(t.stride, seq_.batch, h_, seq_.q_begin + begin_ + row)};
  }

  void LoadRows() {
    const double gain = call_.params.gain;
    const double factor = gain * dropper_.factor();
    for (std::int64_t r = 0; r < strips() * kW; ++r) {
      RowState row{};
      if (r < rows_) row = call_.in.rows[p_.row_index(b_, h_, begin_ + r)];
      scratch_.shift[r] = static_cast<T>(row.shift * call_.params.score_factor);
      scratch_.scale[r] = static_cast<T>(row.scale * factor);
      scratch_.delta[r] = 0;
      if (!call_.params.sum || r >= rows_) continue;
      const double pull = row.scale * std::abs(gain);
      scratch_.delta[r] = static_cast<T>(pull) * OutputDot(r);
    }
  }

  // o_r . dL/do_r, which is sum_j A_rj dL/dA_rj.
  T OutputDot(std::int64_t r) const {
    const RowSource o = Source(call_.in.o, r), d_o = Source(call_.in.d_o, r);
    T* x = scratch_.rows;
    T* y = scratch_.rows + scratch_.row_width;
    LoadRow(o.tensor->data, o.tensor->dtype, o.index, p_.e, T{1}, x);
    LoadRow(d_o.tensor->data, d_o.tensor->dtype, d_o.index, p_.e, T{1}, y);
    const Tag<T> d;
    auto sum = hn::Zero(d);
    std::int64_t i = 0;
    for (; i + kLanes<T> <= p_.e; i += kLanes<T>)
      sum = hn::MulAdd(hn::LoadU(d, x + i), hn::LoadU(d, y + i), sum);
    T total = hn::GetLane(hn::SumOfLanes(d, sum));
    for (; i < p_.e; ++i) total += x[i] * y[i];
    return total;
  }

  void PackQueries() {
    const T scale = static_cast<T>(p_.scale * call_.params.score_factor);
    for (std::int64_t s = 0; s < strips(); ++s)
      PackColumns<T>(Source(p_.in.q, s * kW), strip_rows(s), p_.d, scale,
                     buffer(), scratch_.q_columns + s * kW * p_.d);
    if (!call_.out.dk) return;
    for (std::int64_t r = 0; r < rows_; ++r)
      PackPanels<T>(Source(p_.in.q, r), p_.d, static_cast<T>(p_.scale),
                    call_.plan.q_block, scratch_.q_panels + r * kW);
  }

  void PackOutputGrads() {
    for (std::int64_t s = 0; s < strips() && call_.score_grads(); ++s) {
      T* columns = scratch_.do_columns + s * kW * p_.e;
      PackColumns<T>(Source(call_.in.d_o, s * kW), strip_rows(s), p_.e, T{1},
                     buffer(), columns);
      ScaleLanes(columns, p_.e, scratch_.scale + s * kW);
    }
    if (!call_.out.dv) return;
    for (std::int64_t r = 0; r < rows_; ++r)
      PackPanels<T>(Source(call_.in.d_o, r), p_.e, scratch_.scale[r],
                    call_.plan.q_block, scratch_.do_panels + r * kW);
  }

  void KeyBlock(std::int64_t j, std::int64_t count) {
    const RowsView<T> k =
        KeyRows<T>(p_.in.k, seq_, g_, j, count, call_.plan.copy_k, scratch_.k);
    const RowsView<T> v =
        KeyRows<T>(p_.in.v, seq_, g_, j, count, call_.plan.copy_v, scratch_.v);
    for (std::int64_t s = 0; s < strips(); ++s) {
      if (strip_rows(s) > kLanes<T>) {
        Strip<kStripVectors>(s, j, count, k, v);
      } else {
        Strip<1>(s, j, count, k, v);
      }
    }
    const std::int64_t panel = call_.plan.q_block * kW;
    if (call_.out.dv)
      RowsByPanels<Walk::kAlongRows, T>(count, rows_, p_.e, panel,
                                        {.a = scratch_.weights,
                                         .lda = scratch_.ld,
                                         .b = scratch_.do_panels,
                                         .ldb = kW,
                                         .c = sums_.dv + j * sums_.e_width,
                                         .ldc = sums_.e_width},
                                        true);
    if (call_.out.dk)
      RowsByPanels<Walk::kAlongRows, T>(count, rows_, p_.d, panel,
                                        {.a = scratch_.grads,
                                         .lda = scratch_.ld,
                                         .b = scratch_.q_panels,
                                         .ldb = kW,
                                         .c = sums_.dk + j * sums_.d_width,
                                         .ldc = sums_.d_width},
                                        true);
  }

  // Weights and score gradients of a strip with `count` keys, and dq.
  template <int NV>
  void Strip(std::int64_t s, std::int64_t j, std::int64_t count,
             const RowsView<T>& k, const RowsView<T>& v) {
    const std::int64_t i = begin_ + s * kW;
    const KeyRange keys =
        KeyRange{j, j + count}.within(p_.keys_of_any(seq_, i, strip_rows(s)));
    const std::int64_t seen = keys.count();
    // Where the tiles of these keys begin.
    const std::int64_t skipped = seen == 0 ? 0 : keys.begin - j;
    const std::int64_t at = s * kW + skipped * scratch_.ld;
    T* weights = scratch_.weights + at;
    T* grads = scratch_.grads + at;
    const T* k_rows = k.data + skipped * k.ld;
    ClearOutside(s, skipped, seen, count);
    Rows<NV, Walk::kAlongRows, T>(seen, p_.d,
                                  {.a = k_rows,
                                   .lda = k.ld,
                                   .b = scratch_.q_columns + s * kW * p_.d,
                                   .ldb = kW,
                                   .c = weights,
                                   .ldc = scratch_.ld},
                                  false, &next_);
    if (call_.score_grads())
      Rows<NV, Walk::kAlongRows, T>(seen, p_.e,
                                    {.a = v.data + skipped * v.ld,
                                     .lda = v.ld,
                                     .b = scratch_.do_columns + s * kW * p_.e,
                                     .ldb = kW,
                                     .c = grads,
                                     .ldc = scratch_.ld},
                                    false, &next_);
    if (dropper_.on()) {
      dropper_.template Find<NV>({b_, h_, i, strip_rows(s), keys.begin, seen},
                                 scratch_.dropped);
      ZeroDropped<NV>(scratch_.dropped, seen, grads, scratch_.ld);
    }
    ElementWise(s, keys, weights, grads);
    if (dropper_.on())
      ZeroDropped<NV>(scratch_.dropped, seen, weights, scratch_.ld);
    if (call_.out.dq)
      Rows<NV, Walk::kDownColumns, T>(p_.d, seen,
                                      {.a = k_rows,
                                       .lda = k.ld,
                                       .b = grads,
                                       .ldb = scratch_.ld,
                                       .c = DqStrip(s),
                                       .ldc = kW},
                                      true, &next_);
    if (call_.out.d_bias)
      AddScoreGrads<NV>(ScoreGrads<T>{grads, scratch_.ld, seen, strip_rows(s)},
                        call_.plan.bias.keys == 1, BiasPanel(s, keys.begin));
  }

  // dv and dk are summed over all strips: zeros in those keys of a block that
  // this one does not see.
  void ClearOutside(std::int64_t s, std::int64_t skipped, std::int64_t seen,
                    std::int64_t count) const {
    for (std::int64_t r = 0; r < count; ++r) {
      if (r == skipped) r += seen;
      if (r == count) return;
      std::fill_n(scratch_.weights + r * scratch_.ld + s * kW, kW, T{0});
      std::fill_n(scratch_.grads + r * scratch_.ld + s * kW, kW, T{0});
    }
  }

  T* BiasPanel(std::int64_t s, std::int64_t j) const {
    return BiasSumsOf(p_, call_.plan.bias, storage_.bias, part_,
                      {b_, h_, begin_ + s * kW, strip_rows(s), j, 1});
  }

  T* DqStrip(std::int64_t s) const {
    return sums_.dq + (member_ * sums_.head_rows + begin_ + s * kW) * p_.d;
  }

  // Of a strip and keys that it sees, whose panels these are.
  void ElementWise(std::int64_t s, const KeyRange& keys, T* weights, T* grads) {
    const std::int64_t i = begin_ + s * kW;
    // Keys that all rows of the strip see need no mask.
    KeyRange clean = {keys.begin, keys.begin};
    if (!masked_) {
      const KeyRange all = p_.keys_of_all(seq_, i, strip_rows(s)).within(keys);
      if (!all.empty()) clean = all;
    }
    const auto pass = [&](std::int64_t from, std::int64_t to, bool masked) {
      if (from >= to) return;
      const std::int64_t at = (from - keys.begin) * scratch_.ld;
      RunGradPass<T>(call_.params,
                     {.s = weights + at,
                      .g = grads + at,
                      .ld = scratch_.ld,
                      .rows = to - from,
                      .bias = masked ? MaskPanel(s, from, to - from) : nullptr,
                      .bias_scale = static_cast<T>(call_.params.score_factor),
                      .shift = scratch_.shift + s * kW,
                      .delta = scratch_.delta + s * kW});
    };
    pass(clean.begin, clean.end, false);
    pass(keys.begin, clean.begin, true);
    pass(clean.end, keys.end, true);
  }

  // Bias and mask of a strip and `count` keys from j on.
  const T* MaskPanel(std::int64_t s, std::int64_t j, std::int64_t count) {
    const std::int64_t i = begin_ + s * kW;
    const T* shared = storage_.panels.find(b_, h_, i / kW);
    if (shared != nullptr) return shared + j * kW;
    FillBiasPanel<T>(p_, {b_, h_, i, strip_rows(s), j, count}, buffer(),
                     scratch_.bias);
    return scratch_.bias;
  }

  const BackwardCall<T>& call_;
  const Problem& p_;
  const BackwardScratch<T>& scratch_;
  const Accumulators<T>& sums_;
  const BackwardStorage<T>& storage_;
  const Dropper<T> dropper_;
  const std::int64_t part_;
  const bool masked_;
  const std::int64_t b_, g_;
  const Sequence seq_;
  std::int64_t member_ = 0, h_ = 0, begin_ = 0, rows_ = 0;
  Prefetcher next_;  // fetches for the next pair, during products
};

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
  const std::int64_t strips = group * ceil_div(seq.n, call.plan.strip);
  const std::int64_t k_blocks = ceil_div(seq.m, call.plan.k_block);
  next.Spread(strips * (2 * seq.m + k_blocks * p.d) / kTileRows<kStripVectors>);
  return next;
}

// Every pair by one worker, those that share sums of the bias one after the
// other.
template <typename T>
void RunWholePairs(const BackwardCall<T>& call,
                   const BackwardStorage<T>& storage, Parallel& parallel) {
  const BackwardPlan& plan = call.plan;
  const std::int64_t tasks = ceil_div(plan.all_lines(), plan.lines);
  parallel.run(tasks, [&](std::int64_t task, int worker) {
    const Accumulators<T> sums = storage.slots.of(worker);
    const BackwardScratch<T> scratch = storage.rooms.of(worker);
    for (PairsOfTask at(plan, call.p.kv_heads, task); !at.done();
         at = at.next()) {
      const PairsOfTask after = at.next();
      const PairSums<T> totals(call, sums, at.pair());
      totals.Clear(0);
      BackwardTile<T>(call, scratch, sums, storage, at.pair())
          .Run(0, 0,
               after.done() ? Prefetcher() : PrefetchPair(call, after.pair()));
      totals.Write(0, {scratch.rows, scratch.row_width});
    }
  });
}

// Pairs `first` .. `first + count - 1`, each by many workers.
template <typename T>
void RunInRounds(const BackwardCall<T>& call, const BackwardStorage<T>& storage,
                 std::int64_t first, std::int64_t count, Parallel& parallel) {
  const BackwardPlan& plan = call.plan;
  const std::int64_t chunks = plan.chunks;
  parallel.run(count * chunks, [&](std::int64_t task, int) {
    const Accumulators<T> sums =
        storage.slots.of(static_cast<int>(task / chunks));
    PairSums<T>(call, sums, first + task / chunks).Clear(task % chunks);
  });
  for (std::int64_t round = 0; round < chunks; ++round) {
    parallel.run(count * chunks, [&](std::int64_t task, int worker) {
      const std::int64_t slot = task / chunks, k_chunk = task % chunks;
      const Accumulators<T> sums = storage.slots.of(static_cast<int>(slot));
      const BackwardScratch<T> scratch = storage.rooms.of(worker);
      BackwardTile<T>(call, scratch, sums, storage, first + slot)
          .Run(plan.query_chunk(round, k_chunk), k_chunk);
    });
  }
  parallel.run(count * chunks, [&](std::int64_t task, int worker) {
    const Accumulators<T> sums =
        storage.slots.of(static_cast<int>(task / chunks));
    const BackwardScratch<T> scratch = storage.rooms.of(worker);
    PairSums<T>(call, sums, first + task / chunks)
        .Write(task % chunks, {scratch.rows, scratch.row_width});
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
