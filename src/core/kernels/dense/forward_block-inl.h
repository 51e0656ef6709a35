// Dense attention, forward: one block of queries of one head against all keys.
// Keys and values are streamed, a block at a time; queries, output and the sums
// of every row are kept.
//
//   pack the queries, times the scale, as strips q[D, W]: W queries, in lanes
//   for each block of keys, from the first to the last one that a row may see
//     bring its rows of k and v together, if they lie apart or in another type
//     for each strip of queries, with those of the keys that it may see
//       s[keys, W] = k q                   the product along D
//       softmax: move the running maximum; rescale o and the sums if it moved
//       s = weight(s), bias and causal mask applied; add up |w| and statistics
//         (keys that all rows of the strip see need no mask)
//       dropout: s = 0 where a weight goes
//       o[E, W] += v^T s                   the product along the keys
//   for each row: scale from its sum or its number of keys; write o * scale
//
// A last strip of few rows goes row by row (row-inl.h); one of a vector of
// rows and few more goes as that vector, and these row by row.
// docs/kernels.md derives the algorithm, its cost and its error.
#if defined(POLYATTN_KERNELS_DENSE_FORWARD_BLOCK_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_DENSE_FORWARD_BLOCK_INL_H_
#undef POLYATTN_KERNELS_DENSE_FORWARD_BLOCK_INL_H_
#else
#define POLYATTN_KERNELS_DENSE_FORWARD_BLOCK_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/kernels/dense/dropout-inl.h"
#include "core/kernels/dense/weights-inl.h"
#include "core/kernels/pack-inl.h"
#include "core/kernels/panels-inl.h"
#include "core/kernels/row-inl.h"
#include "core/kernels/tile-inl.h"
#include "core/plan.h"
#include "core/row_end.h"
#include "core/visibility.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

// Moves a strip from the maximum `shift` to `top`. What was summed so far is to
// be multiplied by `factor`; false if that is 1 throughout. A row that has seen
// nothing yet has -inf, for which `safe_shift` has 0.
template <typename T>
HWY_INLINE bool NewShift(const T* top, T* shift, T* safe_shift, T* factor) {
  const Tag<T> d;
  const auto masked = hn::Set(d, -std::numeric_limits<T>::infinity());
  bool moved = false;
  POLYATTN_UNROLL
  for (int v = 0; v < kStripVectors; ++v) {
    const int at = v * kLanes<T>;
    const auto before = hn::Load(d, shift + at);
    const auto after = hn::Load(d, top + at);
    const auto safe = hn::IfThenZeroElse(hn::Eq(after, masked), after);
    moved |= !hn::AllTrue(d, hn::Eq(before, after));
    hn::Store(Exp2<T>(hn::Sub(before, safe)), d, factor + at);
    hn::Store(safe, d, safe_shift + at);
    hn::Store(after, d, shift + at);
  }
  return moved;
}

// One block of queries of one head.
template <typename T>
class ForwardBlock {
 public:
  ForwardBlock(const Problem& p, const ForwardPlan& plan,
               const AttentionResults& results, const PanelStorage<T>& panels,
               const ForwardScratch<T>& scratch)
      : p_(p),
        plan_(plan),
        results_(results),
        panels_(panels),
        scratch_(scratch),
        params_(make_weight_params<T>(p.activation)),
        dropper_(p),
        masked_(p.in.mask || p.in.bias),
        stats_(!results.stats.empty()),
        counts_(masked_ || stats_ || params_.sum) {}

  // Block number `block` of head h of sequence b; `next` takes its steps
  // meanwhile. Returns its share of the statistics.
  AttentionStats Run(std::int64_t b, std::int64_t h, std::int64_t block,
                     const Prefetcher& next) {
    next_ = next;
    b_ = b;
    h_ = h;
    seq_ = p_.sequence(b);
    begin_ = block * plan_.block_rows();
    rows_ = std::min(plan_.block_rows(), seq_.n - begin_);
    if (rows_ <= 0) return {};
    const std::int64_t rest = rows_ % kW;
    splits_ = rest > kLanes<T> && rest <= kLanes<T> + kMostSplitRows;
    strips_ = (rows_ + kW - 1) / kW + (splits_ ? 1 : 0);
    PackQueries();
    StartRows();
    keys_ = p_.keys_of_any(seq_, begin_, rows_);
    std::int64_t j = keys_.begin;
    do {  // once even without a key, so that the output is zeroed
      LookAhead(j + plan_.k_block);
      KeyBlock({j, std::min(j + plan_.k_block, keys_.end)});
      j += plan_.k_block;
    } while (j < keys_.end);
    return Finish();
  }

 private:
  static constexpr std::int64_t kW = kStrip<T>;
  static constexpr T kGone = -std::numeric_limits<T>::infinity();

  // A row by itself costs about as much as four lanes of a vector of 16: two of
  // them save a little, four none.
  static constexpr std::int64_t kMostSplitRows = kLanes<T> / 8;

  // Rows of the block. What is kept of row r of strip s is number s * kW + r,
  // whichever row that is.
  std::int64_t strip_begin(std::int64_t s) const {
    return splits_ && s + 1 == strips_ ? s * kW - kLanes<T> : s * kW;
  }
  std::int64_t strip_rows(std::int64_t s) const {
    const std::int64_t end = s + 1 < strips_ ? strip_begin(s + 1) : rows_;
    return end - strip_begin(s);
  }
  // The first row of a strip, among those of the sequence.
  std::int64_t row_of(std::int64_t s) const { return begin_ + strip_begin(s); }

  // The last strip may have so few rows that they go one by one; its share of
  // q and o then holds them as rows.
  bool row_by_row(std::int64_t s) const {
    return strip_rows(s) <= kMostSingleRows<T>;
  }
  T* q_strip(std::int64_t s) const { return scratch_.q + s * kW * p_.d; }
  T* o_strip(std::int64_t s) const { return scratch_.o + s * kW * p_.e; }
  RowBuffer<T> buffer() const { return {scratch_.rows, scratch_.row_width}; }

  void PackQueries() {
    const T scale = static_cast<T>(p_.scale * params_.score_factor);
    const ConstTensor& q = p_.in.q;
    for (std::int64_t s = 0; s < strips_; ++s) {
      const RowSource src = {
          &q, row_offset(q.stride, seq_.batch, h_, seq_.q_begin + row_of(s))};
      if (!row_by_row(s)) {
        PackColumns<T>(src, strip_rows(s), p_.d, scale, buffer(), q_strip(s));
        continue;
      }
      for (std::int64_t r = 0; r < strip_rows(s); ++r)
        LoadRow(q.data, q.dtype, src.index + r * q.stride[2], p_.d, scale,
                q_strip(s) + r * p_.d);
    }
  }

  void StartRows() {
    std::fill_n(scratch_.sums, strips_ * kW, RowSums{});
    std::fill_n(scratch_.shift, strips_ * kW,
                params_.form == WeightForm::kExp ? kGone : T{0});
    if (p_.activation.log_n_bias) ShiftByLogN();
    full_n_ = static_cast<double>(seq_.m);
    full_scale_ = p_.activation.row_scale(full_n_);
  }

  // The shift of sigmoid is log n, so n is counted ahead of the pass.
  void ShiftByLogN() {
    double counts[kMaxStrip];
    for (std::int64_t s = 0; s < strips_; ++s) {
      const std::int64_t i = row_of(s);
      const KeyRange keys = p_.keys_of_any(seq_, i, strip_rows(s));
      if (masked_)
        count_keys(p_, {b_, h_, i, strip_rows(s), keys.begin, keys.count()},
                   scratch_.rows, scratch_.row_width, counts);
      for (std::int64_t r = 0; r < strip_rows(s); ++r) {
        const double n =
            masked_ ? counts[r]
                    : static_cast<double>(p_.keys_of(seq_, i + r).count());
        if (n > 0) scratch_.shift[s * kW + r] = static_cast<T>(std::log2(n));
      }
    }
  }

  // Has the keys from j on fetched during the block before.
  void LookAhead(std::int64_t j) {
    ahead_ = {};
    const std::int64_t count = std::min(plan_.k_block, keys_.end - j);
    const std::int64_t g = p_.kv_head(h_), row = seq_.k_begin + j;
    if (count <= 0) return;
    ahead_.AddRows(p_.in.k, seq_.batch, g, row, count);
    ahead_.AddRows(p_.in.v, seq_.batch, g, row, count);
    ahead_.Spread(strips_ * plan_.k_block / kTileRows<kStripVectors>);
  }

  void KeyBlock(const KeyRange& block) {
    const std::int64_t g = p_.kv_head(h_), count = block.count();
    const RowsView<T> k = KeyRows<T>(p_.in.k, seq_, g, block.begin, count,
                                     plan_.copy_k, scratch_.k);
    const RowsView<T> v = KeyRows<T>(p_.in.v, seq_, g, block.begin, count,
                                     plan_.copy_v, scratch_.v);
    for (std::int64_t s = 0; s < strips_; ++s) {
      const std::int64_t rows = strip_rows(s), i = strip_begin(s);
      if (row_by_row(s)) {
        for (std::int64_t r = 0; r < rows; ++r) {
          const Part part = PartOf(block, i + r, 1);
          if (part.wanted) SingleRow(s, r, part, From(k, part), From(v, part));
        }
        continue;
      }
      const Part part = PartOf(block, i, rows);
      if (!part.wanted) continue;
      if (rows > kLanes<T>) {
        Strip<kStripVectors>(s, part, From(k, part), From(v, part));
      } else {
        Strip<1>(s, part, From(k, part), From(v, part));
      }
    }
  }

  // Rows of the panel of scores: all queries see those from `from` to `to`, the
  // others go with the bias.
  struct Span {
    std::int64_t from, to, rows;
    std::int64_t clean() const { return to - from; }
  };

  // What some rows see of a block of keys.
  struct Part {
    KeyRange keys;
    std::int64_t skipped;  // keys of the block before these
    bool first;            // nothing of them has been seen yet
    bool wanted;
  };

  // Rows i .. i + rows - 1 of the block of queries; those that see no key at
  // all go through the first block without any.
  Part PartOf(const KeyRange& block, std::int64_t i, std::int64_t rows) const {
    const KeyRange all = p_.keys_of_any(seq_, begin_ + i, rows);
    const KeyRange keys = block.within(all);
    const bool none = all.empty();
    const std::int64_t start = none ? keys_.begin : all.begin;
    const bool first = block.begin <= start;
    return {none ? KeyRange{block.begin, block.begin} : keys,
            none ? 0 : keys.begin - block.begin, first,
            none ? first : !keys.empty()};
  }

  static RowsView<T> From(const RowsView<T>& rows, const Part& part) {
    return {rows.data + part.skipped * rows.ld, rows.ld};
  }

  // Scores, weights and output of a strip with a part of a block of keys.
  template <int NV>
  void Strip(std::int64_t s, const Part& part, const RowsView<T>& k,
             const RowsView<T>& v) {
    const std::int64_t j = part.keys.begin, count = part.keys.count();
    const Span span = SpanOf(part.keys, s);
    // A monomial is taken while the scores are still in registers.
    const bool at_once = params_.form == WeightForm::kMonomial && !counts_ &&
                         span.clean() == count;
    Rows<NV, Walk::kAlongRows, T>(count, p_.d,
                                  {.a = k.data,
                                   .lda = k.ld,
                                   .b = q_strip(s),
                                   .ldb = kW,
                                   .c = scratch_.weights,
                                   .ldc = kW,
                                   .power = at_once ? params_.degree : 1},
                                  false, &ahead_);
    if (!at_once) Weights(s, part, span);
    if (dropper_.on()) {
      dropper_.template Find<NV>({b_, h_, row_of(s), strip_rows(s), j, count},
                                 scratch_.bias);
      ZeroDropped<NV>(scratch_.bias, count, scratch_.weights, kW);
    }
    Rows<NV, Walk::kDownColumns, T>(p_.e, count,
                                    {.a = v.data,
                                     .lda = v.ld,
                                     .b = scratch_.weights,
                                     .ldb = kW,
                                     .c = o_strip(s),
                                     .ldc = kW},
                                    !part.first, &next_);
  }

  // Scores to weights, for the strip as a whole.
  void Weights(std::int64_t s, const Part& part, const Span& span) {
    LaneSums<T> sums;
    alignas(64) T factor[kMaxStrip];
    const T* bias = BiasPanel(s, part.keys.begin, span);
    if (Weigh(span, bias, scratch_.shift + s * kW, false, sums, factor) &&
        !part.first) {
      for (std::int64_t r = 0; r < kW; ++r)
        Rescale(scratch_.sums[s * kW + r], static_cast<double>(factor[r]));
      ScaleLanes(o_strip(s), p_.e, factor);
    }
    if (!counts_) return;
    for (std::int64_t r = 0; r < strip_rows(s); ++r)
      AddLane(sums, r, scratch_.sums[s * kW + r]);
  }

  // Bias and mask of a strip and the keys from j on, filled where the span has
  // use for them.
  const T* BiasPanel(std::int64_t s, std::int64_t j, const Span& span) {
    const T* shared = panels_.find(b_, h_, begin_ / kW + s);
    if (shared != nullptr) return shared + j * kW;
    const auto fill = [&](std::int64_t from, std::int64_t to) {
      if (from == to) return;
      FillBiasPanel<T>(p_,
                       {b_, h_, row_of(s), strip_rows(s), j + from, to - from},
                       buffer(), scratch_.bias + from * kW);
    };
    fill(0, span.from);
    fill(span.to, span.rows);
    return scratch_.bias;
  }

  // The same for row r of a strip that goes row by row.
  void SingleRow(std::int64_t s, std::int64_t r, const Part& part,
                 const RowsView<T>& k, const RowsView<T>& v) {
    const std::int64_t row = row_of(s) + r, kept = s * kW + r;
    const std::int64_t j = part.keys.begin, count = part.keys.count();
    T* o = o_strip(s) + r * p_.e;
    if (part.first) std::fill_n(o, p_.e, T{0});
    DotRows(q_strip(s) + r * p_.d, k, count, p_.d, scratch_.weights);
    const std::int64_t full = masked_ ? 0 : count / kW;
    const std::int64_t panel = (count + kW - 1) / kW;
    if (full < panel) {
      const std::int64_t rest = count - full * kW;
      fill_bias_rows(p_, {b_, h_, row, 1, j + full * kW, rest},
                     scratch_.bias + full * kW, rest);
      std::fill(scratch_.bias + count, scratch_.bias + panel * kW, kGone);
      std::fill(scratch_.weights + count, scratch_.weights + panel * kW, T{0});
    }
    LaneSums<T> sums;
    alignas(64) T shift[kMaxStrip], factor[kMaxStrip];
    std::fill_n(shift, kW, scratch_.shift[kept]);
    const Span span{.from = 0, .to = full, .rows = panel};
    if (Weigh(span, scratch_.bias, shift, true, sums, factor) && !part.first) {
      Rescale(scratch_.sums[kept], static_cast<double>(factor[0]));
      for (std::int64_t c = 0; c < p_.e; ++c) o[c] *= factor[0];
    }
    scratch_.shift[kept] = shift[0];
    for (std::int64_t lane = 0; lane < kW && counts_; ++lane)
      AddLane(sums, lane, scratch_.sums[kept]);
    if (dropper_.on())
      dropper_.ZeroRow({b_, h_, row, 1, j, count}, scratch_.weights);
    AddRows(scratch_.weights, v, count, p_.e, o);
  }

  Span SpanOf(const KeyRange& keys, std::int64_t s) const {
    if (masked_) return {0, 0, keys.count()};
    const KeyRange clean =
        keys.within(p_.keys_of_all(seq_, row_of(s), strip_rows(s)));
    if (clean.empty()) return {0, 0, keys.count()};
    return {clean.begin - keys.begin, clean.end - keys.begin, keys.count()};
  }

  // Scores to weights; `bias` [rows, W]. For softmax, moves `shift` to the new
  // maximum (that of all lanes if they are `shared` by one query), and returns
  // true if what was summed so far is to be multiplied by `factor`.
  bool Weigh(const Span& span, const T* bias, T* shift, bool shared,
             LaneSums<T>& sums, T* factor) {
    const auto rows = [&](std::int64_t from, std::int64_t to, const T* panel) {
      return PassArgs<T>{.s = scratch_.weights + from * kW,
                         .ld = kW,
                         .rows = to - from,
                         .bias = panel == nullptr ? nullptr : panel + from * kW,
                         .bias_scale = static_cast<T>(params_.score_factor),
                         .shift = shift,
                         .sums = &sums};
    };
    PassArgs<T> passes[] = {rows(span.from, span.to, nullptr),
                            rows(0, span.from, bias),
                            rows(span.to, span.rows, bias)};
    if (counts_) sums.clear();
    alignas(64) T safe_shift[kMaxStrip];
    bool moved = false;
    if (params_.form == WeightForm::kExp) {
      alignas(64) T top[kMaxStrip];
      std::copy_n(shift, kW, top);
      for (const PassArgs<T>& pass : passes)
        if (pass.rows > 0) MaxPass(pass, top);
      if (shared) ShareTop(top);
      moved = NewShift(top, shift, safe_shift, factor);
      for (PassArgs<T>& pass : passes) pass.shift = safe_shift;
    }
    for (const PassArgs<T>& pass : passes)
      if (pass.rows > 0) RunWeightPass(params_, stats_, pass);
    return moved;
  }

  static void Rescale(RowSums& sums, double factor) {
    sums.weight *= factor;
    sums.weight_sq *= factor * factor;
    sums.derivative_sq *= factor * factor;
    sums.derivative_sq_weight *= factor * factor * factor;
  }

  static void AddLane(const LaneSums<T>& from, std::int64_t lane, RowSums& to) {
    to.weight += static_cast<double>(from.weight[lane]);
    to.weight_sq += static_cast<double>(from.weight_sq[lane]);
    to.derivative_sq += static_cast<double>(from.derivative_sq[lane]);
    to.derivative_sq_weight +=
        static_cast<double>(from.derivative_sq_weight[lane]);
    to.seen += static_cast<double>(from.count[lane]);
    to.top_score =
        std::max(to.top_score, static_cast<double>(from.top_score[lane]));
  }

  AttentionStats Finish() {
    AttentionStats total;
    const Tensor& o = results_.o;
    alignas(64) T scale[kMaxStrip];
    for (std::int64_t s = 0; s < strips_; ++s) {
      for (std::int64_t r = 0; r < strip_rows(s); ++r)
        scale[r] = EndRow(row_of(s) + r, s * kW + r, total);
      const RowTarget dst = {
          &o, row_offset(o.stride, seq_.batch, h_, seq_.q_begin + row_of(s))};
      if (!row_by_row(s)) {
        total.non_finite += UnpackColumns<T>(o_strip(s), p_.e, strip_rows(s),
                                             scale, buffer(), dst, stats_);
        continue;
      }
      for (std::int64_t r = 0; r < strip_rows(s); ++r)
        total.non_finite +=
            StoreRow(o_strip(s) + r * p_.e, p_.e, scale[r], o.data, o.dtype,
                     dst.index + r * o.stride[2]);
    }
    return total;
  }

  // Ends row i, of which `kept` is kept; returns what its output is to be
  // multiplied by.
  T EndRow(std::int64_t i, std::int64_t kept, AttentionStats& total) const {
    const RowSums& sums = scratch_.sums[kept];
    const double n =
        masked_ ? sums.seen : static_cast<double>(p_.keys_of(seq_, i).count());
    const double scale =
        n == full_n_ ? full_scale_ : p_.activation.row_scale(n);
    const RowState row = end_row(
        params_, sums, static_cast<double>(scratch_.shift[kept]), scale, n);
    if (stats_ && n > 0) add_row(params_, sums, row, total);
    if (!results_.rows.empty()) results_.rows[p_.row_index(b_, h_, i)] = row;
    return static_cast<T>(row.scale * params_.gain * dropper_.factor());
  }

  const Problem& p_;
  const ForwardPlan& plan_;
  const AttentionResults& results_;
  const PanelStorage<T>& panels_;
  const ForwardScratch<T>& scratch_;
  const WeightParams<T> params_;
  const Dropper<T> dropper_;
  const bool masked_, stats_;
  const bool counts_;                   // sums over the keys are wanted
  double full_n_ = 0, full_scale_ = 0;  // of a row that sees all keys
  std::int64_t b_ = 0, h_ = 0, begin_ = 0, rows_ = 0;
  std::int64_t strips_ = 0;
  bool splits_ = false;  // the last strip goes row by row after one vector
  Sequence seq_{};
  KeyRange keys_{};   // those that some row of the block may see
  Prefetcher ahead_;  // fetches the next block of keys, during scores
  Prefetcher next_;   // fetches for the next block of queries, during output
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#endif
