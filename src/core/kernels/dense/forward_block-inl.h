// Dense attention, forward: one block of queries of one head against all keys.
// Keys and values are streamed, a block at a time; queries, output and the sums
// of every row are kept.
//
//   pack the queries, times the scale, as strips q[D, W]: W queries, in lanes
//   for each block of keys, up to the last one that a row may see
//     bring its rows of k and v together, if they lie apart or in another type
//     for each strip of queries
//       s[keys, W] = k q                   the product along D
//       softmax: move the running maximum; rescale o and the sums if it moved
//       s = weight(s), bias and causal mask applied; add up |w| and statistics
//       dropout: s = 0 where a weight goes
//       o[E, W] += v^T s                   the product along the keys
//   for each row: scale from its sum or its number of keys; write o * scale
//
// A last strip of few rows goes row by row (row-inl.h).
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
    PackQueries();
    StartRows();
    const std::int64_t end = p_.causal_limit(seq_, begin_ + rows_ - 1);
    std::int64_t j = 0;
    do {  // once even without a key, so that the output is zeroed
      LookAhead(j + plan_.k_block, end);
      KeyBlock(j, std::min(plan_.k_block, end - j));
      j += plan_.k_block;
    } while (j < end);
    return Finish();
  }

 private:
  static constexpr std::int64_t kW = kStrip<T>;
  static constexpr T kGone = -std::numeric_limits<T>::infinity();

  std::int64_t strips() const { return (rows_ + kW - 1) / kW; }
  std::int64_t strip_rows(std::int64_t s) const {
    return std::min(kW, rows_ - s * kW);
  }

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
    for (std::int64_t s = 0; s < strips(); ++s) {
      const RowSource src = {&q, row_offset(q.stride, seq_.batch, h_,
                                            seq_.q_begin + begin_ + s * kW)};
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
    std::fill_n(scratch_.sums, strips() * kW, RowSums{});
    std::fill_n(scratch_.shift, strips() * kW,
                params_.form == WeightForm::kExp ? kGone : T{0});
    if (p_.activation.log_n_bias) ShiftByLogN();
    full_n_ = static_cast<double>(seq_.m);
    full_scale_ = p_.activation.row_scale(full_n_);
  }

  // The shift of sigmoid is log n, so n is counted ahead of the pass.
  void ShiftByLogN() {
    double counts[kMaxStrip];
    for (std::int64_t s = 0; s < strips(); ++s) {
      const std::int64_t i = begin_ + s * kW;
      if (masked_)
        count_keys(p_, {b_, h_, i, strip_rows(s), 0, seq_.m}, scratch_.rows,
                   scratch_.row_width, counts);
      for (std::int64_t r = 0; r < strip_rows(s); ++r) {
        const double n =
            masked_ ? counts[r]
                    : static_cast<double>(p_.causal_limit(seq_, i + r));
        if (n > 0) scratch_.shift[s * kW + r] = static_cast<T>(std::log2(n));
      }
    }
  }

  // Has the keys from j on, up to `end`, fetched during the block before.
  void LookAhead(std::int64_t j, std::int64_t end) {
    ahead_ = {};
    const std::int64_t count = std::min(plan_.k_block, end - j);
    const std::int64_t g = p_.kv_head(h_), row = seq_.k_begin + j;
    if (count <= 0) return;
    ahead_.AddRows(p_.in.k, seq_.batch, g, row, count);
    ahead_.AddRows(p_.in.v, seq_.batch, g, row, count);
    ahead_.Spread(strips() * plan_.k_block / kTileRows<kStripVectors>);
  }

  void KeyBlock(std::int64_t j, std::int64_t count) {
    const std::int64_t g = p_.kv_head(h_);
    const RowsView<T> k =
        KeyRows<T>(p_.in.k, seq_, g, j, count, plan_.copy_k, scratch_.k);
    const RowsView<T> v =
        KeyRows<T>(p_.in.v, seq_, g, j, count, plan_.copy_v, scratch_.v);
    for (std::int64_t s = 0; s < strips(); ++s) {
      const std::int64_t rows = strip_rows(s), i = s * kW;
      if (row_by_row(s)) {
        for (std::int64_t r = 0; r < rows; ++r)
          SingleRow(s, r, j, Seen(i + r, j, count), k, v);
        continue;
      }
      const std::int64_t seen = Seen(i + rows - 1, j, count);
      if (seen == 0 && j > 0) continue;
      if (rows > kLanes<T>) {
        Strip<kStripVectors>(s, j, seen, k, v);
      } else {
        Strip<1>(s, j, seen, k, v);
      }
    }
  }

  // How many of the `count` keys from j on causality lets row i see.
  std::int64_t Seen(std::int64_t i, std::int64_t j, std::int64_t count) const {
    return std::clamp<std::int64_t>(p_.causal_limit(seq_, begin_ + i) - j, 0,
                                    count);
  }

  // Scores, weights and output of a strip with `count` keys from j on.
  template <int NV>
  void Strip(std::int64_t s, std::int64_t j, std::int64_t count,
             const RowsView<T>& k, const RowsView<T>& v) {
    // The first `clean` keys are seen by all rows of the strip.
    const std::int64_t clean = masked_ ? 0 : Seen(s * kW, j, count);
    // A monomial is taken while the scores are still in registers.
    const bool at_once =
        params_.form == WeightForm::kMonomial && !counts_ && clean == count;
    Rows<NV, Walk::kAlongRows, T>(count, p_.d,
                                  {.a = k.data,
                                   .lda = k.ld,
                                   .b = q_strip(s),
                                   .ldb = kW,
                                   .c = scratch_.weights,
                                   .ldc = kW,
                                   .power = at_once ? params_.degree : 1},
                                  false, &ahead_);
    if (!at_once) Weights(s, j, clean, count);
    if (dropper_.on()) {
      dropper_.template Find<NV>(
          {b_, h_, begin_ + s * kW, strip_rows(s), j, count}, scratch_.bias);
      ZeroDropped<NV>(scratch_.bias, count, scratch_.weights, kW);
    }
    Rows<NV, Walk::kDownColumns, T>(p_.e, count,
                                    {.a = v.data,
                                     .lda = v.ld,
                                     .b = scratch_.weights,
                                     .ldb = kW,
                                     .c = o_strip(s),
                                     .ldc = kW},
                                    j > 0, &next_);
  }

  // Scores to weights, for the strip as a whole.
  void Weights(std::int64_t s, std::int64_t j, std::int64_t clean,
               std::int64_t count) {
    LaneSums<T> sums;
    alignas(64) T factor[kMaxStrip];
    const Span span{.clean = clean,
                    .rows = count,
                    .bias = BiasPanel(s, j + clean, count - clean)};
    if (Weigh(span, scratch_.shift + s * kW, false, sums, factor) && j > 0) {
      for (std::int64_t r = 0; r < kW; ++r)
        Rescale(scratch_.sums[s * kW + r], static_cast<double>(factor[r]));
      ScaleLanes(o_strip(s), p_.e, factor);
    }
    if (!counts_) return;
    for (std::int64_t r = 0; r < strip_rows(s); ++r)
      AddLane(sums, r, scratch_.sums[s * kW + r]);
  }

  // Bias and mask of a strip and `count` keys from j on.
  const T* BiasPanel(std::int64_t s, std::int64_t j, std::int64_t count) {
    if (count == 0) return nullptr;
    const T* shared = panels_.find(b_, h_, begin_ / kW + s);
    if (shared != nullptr) return shared + j * kW;
    FillBiasPanel<T>(p_, {b_, h_, begin_ + s * kW, strip_rows(s), j, count},
                     buffer(), scratch_.bias);
    return scratch_.bias;
  }

  // The same for row r of a strip that goes row by row.
  void SingleRow(std::int64_t s, std::int64_t r, std::int64_t j,
                 std::int64_t count, const RowsView<T>& k,
                 const RowsView<T>& v) {
    const std::int64_t row = s * kW + r;
    T* o = o_strip(s) + r * p_.e;
    if (j == 0) std::fill_n(o, p_.e, T{0});
    DotRows(q_strip(s) + r * p_.d, k, count, p_.d, scratch_.weights);
    const std::int64_t full = masked_ ? 0 : count / kW;
    const std::int64_t panel = (count + kW - 1) / kW;
    if (full < panel) {
      const std::int64_t rest = count - full * kW;
      fill_bias_rows(p_, {b_, h_, begin_ + row, 1, j + full * kW, rest},
                     scratch_.bias, rest);
      std::fill(scratch_.bias + rest, scratch_.bias + (panel - full) * kW,
                kGone);
      std::fill(scratch_.weights + count, scratch_.weights + panel * kW, T{0});
    }
    LaneSums<T> sums;
    alignas(64) T shift[kMaxStrip], factor[kMaxStrip];
    std::fill_n(shift, kW, scratch_.shift[row]);
    const Span span{.clean = full, .rows = panel, .bias = scratch_.bias};
    if (Weigh(span, shift, true, sums, factor) && j > 0) {
      Rescale(scratch_.sums[row], static_cast<double>(factor[0]));
      for (std::int64_t c = 0; c < p_.e; ++c) o[c] *= factor[0];
    }
    scratch_.shift[row] = shift[0];
    for (std::int64_t lane = 0; lane < kW && counts_; ++lane)
      AddLane(sums, lane, scratch_.sums[row]);
    if (dropper_.on())
      dropper_.ZeroRow({b_, h_, begin_ + row, 1, j, count}, scratch_.weights);
    AddRows(scratch_.weights, v, count, p_.e, o);
  }

  // Rows of the panel of scores: those from `clean` on go with the bias.
  struct Span {
    std::int64_t clean, rows;
    const T* bias;
  };

  // Scores to weights. For softmax, moves `shift` to the new maximum (that of
  // all lanes if they are `shared` by one query), and returns true if what was
  // summed so far is to be multiplied by `factor`.
  bool Weigh(const Span& span, T* shift, bool shared, LaneSums<T>& sums,
             T* factor) {
    const auto [clean, rows, bias] = span;
    PassArgs<T> all = {.s = scratch_.weights,
                       .ld = kW,
                       .rows = clean,
                       .bias = nullptr,
                       .bias_scale = static_cast<T>(params_.score_factor),
                       .shift = shift,
                       .sums = &sums};
    PassArgs<T> some = all;
    some.s += clean * kW;
    some.rows = rows - clean;
    some.bias = bias;
    if (counts_) sums.clear();
    alignas(64) T safe_shift[kMaxStrip];
    bool moved = false;
    if (params_.form == WeightForm::kExp) {
      alignas(64) T top[kMaxStrip];
      std::copy_n(shift, kW, top);
      if (clean > 0) MaxPass(all, top);
      if (clean < rows) MaxPass(some, top);
      if (shared) ShareTop(top);
      moved = NewShift(top, shift, safe_shift, factor);
      all.shift = some.shift = safe_shift;
    }
    if (clean > 0) RunWeightPass(params_, stats_, all);
    if (clean < rows) RunWeightPass(params_, stats_, some);
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
    for (std::int64_t s = 0; s < strips(); ++s) {
      for (std::int64_t r = 0; r < strip_rows(s); ++r)
        scale[r] = EndRow(s * kW + r, total);
      const RowTarget dst = {&o, row_offset(o.stride, seq_.batch, h_,
                                            seq_.q_begin + begin_ + s * kW)};
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

  // Ends row i of the block; returns what its output is to be multiplied by.
  T EndRow(std::int64_t i, AttentionStats& total) const {
    const RowSums& sums = scratch_.sums[i];
    const double n =
        masked_ ? sums.seen
                : static_cast<double>(p_.causal_limit(seq_, begin_ + i));
    const double scale =
        n == full_n_ ? full_scale_ : p_.activation.row_scale(n);
    const RowState row = end_row(
        params_, sums, static_cast<double>(scratch_.shift[i]), scale, n);
    if (stats_ && n > 0) add_row(params_, sums, row, total);
    if (!results_.rows.empty())
      results_.rows[p_.row_index(b_, h_, begin_ + i)] = row;
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
  Sequence seq_{};
  Prefetcher ahead_;  // fetches the next block of keys, during scores
  Prefetcher next_;   // fetches for the next block of queries, during output
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#endif
