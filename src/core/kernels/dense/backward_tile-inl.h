// Dense attention, backward: one tile of the grid that plan.h describes, in
// which scores are computed again. Queries are streamed in the outer loop and
// keys in the inner one; the sums of dq, dk and dv are kept in memory.
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
//         d_bias += g
//       dq[queries, D] += g k                         along the keys
//       dv[keys, E] += s do,  dk[keys, D] += g q      along the queries
//
// The last rows may be few: they go one by one (row-inl.h) up to s and g, which
// then lie beside those of the strips.
// docs/kernels.md derives the gradients.
#if defined(POLYATTN_KERNELS_DENSE_BACKWARD_TILE_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_DENSE_BACKWARD_TILE_INL_H_
#undef POLYATTN_KERNELS_DENSE_BACKWARD_TILE_INL_H_
#else
#define POLYATTN_KERNELS_DENSE_BACKWARD_TILE_INL_H_
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
#include "core/kernels/row-inl.h"
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
               const PairSums<T>& sums, const BackwardStorage<T>& storage,
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

  // What a row of a block, or a strip of them, sees of a block of keys.
  struct Part {
    KeyRange keys;
    std::int64_t skipped;  // keys of the block before these
    std::int64_t count;    // keys of the block
    std::int64_t seen() const { return keys.count(); }
  };

  // Rows of the block that go by strips; those behind them go one by one.
  std::int64_t strip_end() const { return rows_ - SingleRows<T>(rows_); }
  std::int64_t strips() const { return (strip_end() + kW - 1) / kW; }
  std::int64_t strip_rows(std::int64_t s) const {
    return std::min(kW, strip_end() - s * kW);
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
    for (std::int64_t r = 0; r < call_.plan.q_block; ++r) {
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
    T* x = scratch_.rows;
    T* y = scratch_.rows + scratch_.row_width;
    Load(call_.in.o, r, p_.e, T{1}, x);
    Load(call_.in.d_o, r, p_.e, T{1}, y);
    const Tag<T> d;
    auto sum = hn::Zero(d);
    std::int64_t i = 0;
    for (; i + kLanes<T> <= p_.e; i += kLanes<T>)
      sum = hn::MulAdd(hn::LoadU(d, x + i), hn::LoadU(d, y + i), sum);
    T total = hn::GetLane(hn::SumOfLanes(d, sum));
    for (; i < p_.e; ++i) total += x[i] * y[i];
    return total;
  }

  void Load(const ConstTensor& t, std::int64_t r, std::int64_t width, T scale,
            T* to) const {
    LoadRow(t.data, t.dtype, Source(t, r).index, width, scale, to);
  }

  void PackQueries() {
    const T scale = static_cast<T>(p_.scale * call_.params.score_factor);
    for (std::int64_t s = 0; s < strips(); ++s)
      PackColumns<T>(Source(p_.in.q, s * kW), strip_rows(s), p_.d, scale,
                     buffer(), scratch_.q_columns + s * kW * p_.d);
    for (std::int64_t r = strip_end(); r < rows_; ++r)
      Load(p_.in.q, r, p_.d, scale, QueryRow(r));
    if (!call_.out.dk) return;
    for (std::int64_t r = 0; r < rows_; ++r)
      PackPanels<T>(Source(p_.in.q, r), p_.d, static_cast<T>(p_.scale),
                    call_.plan.q_block, scratch_.q_panels + r * kW);
  }

  void PackOutputGrads() {
    const ConstTensor& d_o = call_.in.d_o;
    for (std::int64_t s = 0; s < strips() && call_.score_grads(); ++s) {
      T* columns = scratch_.do_columns + s * kW * p_.e;
      PackColumns<T>(Source(d_o, s * kW), strip_rows(s), p_.e, T{1}, buffer(),
                     columns);
      ScaleLanes(columns, p_.e, scratch_.scale + s * kW);
    }
    for (std::int64_t r = strip_end(); r < rows_ && call_.score_grads(); ++r)
      Load(d_o, r, p_.e, scratch_.scale[r], OutputGradRow(r));
    if (!call_.out.dv) return;
    for (std::int64_t r = 0; r < rows_; ++r)
      PackPanels<T>(Source(d_o, r), p_.e, scratch_.scale[r], call_.plan.q_block,
                    scratch_.do_panels + r * kW);
  }

  // Those of a row that goes by itself.
  T* QueryRow(std::int64_t r) const {
    return scratch_.q_rows + (r - strip_end()) * p_.d;
  }
  T* OutputGradRow(std::int64_t r) const {
    return scratch_.do_rows + (r - strip_end()) * p_.e;
  }

  void KeyBlock(std::int64_t j, std::int64_t count) {
    const RowsView<T> k =
        KeyRows<T>(p_.in.k, seq_, g_, j, count, call_.plan.copy_k, scratch_.k);
    const RowsView<T> v =
        KeyRows<T>(p_.in.v, seq_, g_, j, count, call_.plan.copy_v, scratch_.v);
    for (std::int64_t s = 0; s < strips(); ++s) {
      const Part part = PartOf(s * kW, strip_rows(s), j, count);
      if (strip_rows(s) > kLanes<T>) {
        Strip<kStripVectors>(s, part, k, v);
      } else {
        Strip<1>(s, part, k, v);
      }
    }
    // They lie in lanes that the strip before them has used.
    for (std::int64_t r = strip_end(); r < rows_; ++r)
      SingleRow(r, PartOf(r, 1, j, count), k, v);
    if (call_.out.dq) AddToQueries(j, count, k);
    const RowsAt<T> dv = sums_.dv(), dk = sums_.dk();
    const bool first = sums_.overwritten() && member_ == 0 && begin_ == 0;
    if (call_.out.dv)
      AlongQueries(count, p_.e, scratch_.weights, scratch_.do_panels,
                   {dv.data + j * dv.ld, dv.ld}, first);
    if (call_.out.dk)
      AlongQueries(count, p_.d, scratch_.grads, scratch_.q_panels,
                   {dk.data + j * dk.ld, dk.ld}, first);
  }

  // What `rows` rows from row r of the block on see of `count` keys.
  Part PartOf(std::int64_t r, std::int64_t rows, std::int64_t j,
              std::int64_t count) const {
    const KeyRange keys =
        KeyRange{j, j + count}.within(p_.keys_of_any(seq_, begin_ + r, rows));
    return {keys, keys.empty() ? 0 : keys.begin - j, count};
  }

  // c[keys, width] += a[keys, queries] b.
  void AlongQueries(std::int64_t keys, std::int64_t width, const T* a,
                    const T* b, const RowsAt<T>& c, bool first) {
    RowsByPanels<Walk::kAlongRows, T>(keys, rows_, width,
                                      call_.plan.q_block * kW,
                                      {.a = a,
                                       .lda = scratch_.ld,
                                       .b = b,
                                       .ldb = kW,
                                       .c = c.data,
                                       .ldc = c.ld},
                                      !first, &next_);
  }

  // dq of the block: at once where all rows see all of these keys, otherwise
  // strip by strip with what each sees.
  void AddToQueries(std::int64_t j, std::int64_t count, const RowsView<T>& k) {
    const auto add = [&](std::int64_t r, std::int64_t rows) {
      const Part part = PartOf(r, rows, j, count);
      const RowsAt<T> dq = sums_.dq(member_);
      RowsByPanels<Walk::kDownColumns, T>(
          rows, part.seen(), p_.d, kW,
          {.a = scratch_.grads + part.skipped * scratch_.ld + r,
           .lda = scratch_.ld,
           .b = k.data + part.skipped * k.ld,
           .ldb = k.ld,
           .c = dq.data + (begin_ + r) * dq.ld,
           .ldc = dq.ld},
          !(sums_.overwritten() && j == 0), &next_);
    };
    const KeyRange all =
        KeyRange{j, j + count}.within(p_.keys_of_all(seq_, begin_, rows_));
    if (all.count() == count) return add(0, rows_);
    for (std::int64_t s = 0; s < strips(); ++s) add(s * kW, strip_rows(s));
    if (strip_end() < rows_) add(strip_end(), rows_ - strip_end());
  }

  // Weights and score gradients of a strip with its part of a block of keys.
  template <int NV>
  void Strip(std::int64_t s, const Part& part, const RowsView<T>& k,
             const RowsView<T>& v) {
    const std::int64_t i = begin_ + s * kW, seen = part.seen();
    // Where the tiles of these keys begin.
    const std::int64_t at = s * kW + part.skipped * scratch_.ld;
    T* weights = scratch_.weights + at;
    T* grads = scratch_.grads + at;
    ClearOutside(s * kW, kW, part);
    Rows<NV, Walk::kAlongRows, T>(seen, p_.d,
                                  {.a = k.data + part.skipped * k.ld,
                                   .lda = k.ld,
                                   .b = scratch_.q_columns + s * kW * p_.d,
                                   .ldb = kW,
                                   .c = weights,
                                   .ldc = scratch_.ld},
                                  false, &next_);
    if (call_.score_grads())
      Rows<NV, Walk::kAlongRows, T>(seen, p_.e,
                                    {.a = v.data + part.skipped * v.ld,
                                     .lda = v.ld,
                                     .b = scratch_.do_columns + s * kW * p_.e,
                                     .ldb = kW,
                                     .c = grads,
                                     .ldc = scratch_.ld},
                                    false, &next_);
    if (dropper_.on()) {
      dropper_.template Find<NV>(
          {b_, h_, i, strip_rows(s), part.keys.begin, seen}, scratch_.dropped);
      ZeroDropped<NV>(scratch_.dropped, seen, grads, scratch_.ld);
    }
    ElementWise(s, part.keys, weights, grads);
    if (dropper_.on())
      ZeroDropped<NV>(scratch_.dropped, seen, weights, scratch_.ld);
    if (call_.out.d_bias)
      AddScoreGrads<NV>(ScoreGrads<T>{grads, scratch_.ld, seen, strip_rows(s)},
                        call_.plan.bias.keys == 1,
                        BiasPanel(s, strip_rows(s), part.keys.begin));
  }

  // dq, dk and dv are summed over all rows of a block: zeros in those keys that
  // the `lanes` rows from row r on do not see.
  void ClearOutside(std::int64_t r, std::int64_t lanes,
                    const Part& part) const {
    for (std::int64_t key = 0; key < part.count; ++key) {
      if (key == part.skipped) key += part.seen();
      if (key == part.count) return;
      std::fill_n(scratch_.weights + key * scratch_.ld + r, lanes, T{0});
      std::fill_n(scratch_.grads + key * scratch_.ld + r, lanes, T{0});
    }
  }

  T* BiasPanel(std::int64_t s, std::int64_t rows, std::int64_t j) const {
    return BiasSumsOf(p_, call_.plan.bias, storage_.bias, part_,
                      {b_, h_, begin_ + s * kW, rows, j, 1});
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

  // The same as a strip for row r of the block, with keys in lanes.
  void SingleRow(std::int64_t r, const Part& part, const RowsView<T>& k,
                 const RowsView<T>& v) {
    const std::int64_t seen = part.seen();
    const ScoreBlock at = {b_, h_, begin_ + r, 1, part.keys.begin, seen};
    T* weights = scratch_.rows;  // each in room for two rows
    T* grads = scratch_.rows + 2 * scratch_.row_width;
    DotRows(QueryRow(r), RowsView<T>{k.data + part.skipped * k.ld, k.ld}, seen,
            p_.d, weights);
    if (call_.score_grads()) {
      DotRows(OutputGradRow(r), RowsView<T>{v.data + part.skipped * v.ld, v.ld},
              seen, p_.e, grads);
    } else {
      std::fill_n(grads, seen, T{0});
    }
    if (dropper_.on()) dropper_.ZeroRow(at, grads);
    ElementWiseRow(r, at, weights, grads);
    if (dropper_.on()) dropper_.ZeroRow(at, weights);
    ClearOutside(r, 1, part);
    for (std::int64_t key = 0; key < seen; ++key) {
      const std::int64_t to = (part.skipped + key) * scratch_.ld + r;
      scratch_.weights[to] = weights[key];
      scratch_.grads[to] = grads[key];
    }
    if (call_.out.d_bias) AddRowToBias(r, at, grads);
  }

  void ElementWiseRow(std::int64_t r, const ScoreBlock& at, T* weights,
                      T* grads) const {
    const std::int64_t panel = (at.cols + kW - 1) / kW;
    if (masked_) {
      fill_bias_rows(p_, at, scratch_.bias, at.cols);
      std::fill(scratch_.bias + at.cols, scratch_.bias + panel * kW, T{0});
    }
    std::fill(weights + at.cols, weights + panel * kW, T{0});
    std::fill(grads + at.cols, grads + panel * kW, T{0});
    alignas(64) T shift[kMaxStrip], delta[kMaxStrip];
    std::fill_n(shift, kW, scratch_.shift[r]);
    std::fill_n(delta, kW, scratch_.delta[r]);
    RunGradPass<T>(call_.params,
                   {.s = weights,
                    .g = grads,
                    .ld = kW,
                    .rows = panel,
                    .bias = masked_ ? scratch_.bias : nullptr,
                    .bias_scale = static_cast<T>(call_.params.score_factor),
                    .shift = shift,
                    .delta = delta});
  }

  void AddRowToBias(std::int64_t r, const ScoreBlock& at,
                    const T* grads) const {
    const bool share = call_.plan.bias.keys == 1;
    T* to = BiasPanel(r / kW, 1, at.j) + r % kW;
    for (std::int64_t key = 0; key < at.cols; ++key)
      to[share ? 0 : key * kW] += grads[key];
  }

  const BackwardCall<T>& call_;
  const Problem& p_;
  const BackwardScratch<T>& scratch_;
  const PairSums<T>& sums_;
  const BackwardStorage<T>& storage_;
  const Dropper<T> dropper_;
  const std::int64_t part_;
  const bool masked_;
  const std::int64_t b_, g_;
  const Sequence seq_;
  std::int64_t member_ = 0, h_ = 0, begin_ = 0, rows_ = 0;
  Prefetcher next_;  // fetches for the next pair, during products
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#endif
