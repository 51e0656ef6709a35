// A tile of the double backward: four matrices of scores are computed from
// seven rows, tile by tile of backward's grid, and thrown away.
//
//   for each head of the group, for each block of queries
//     load shift, scale and sums of its rows
//     pack q, uq, and do times the row scale, as strips and as panels
//     for each block of keys that some row may see
//       for each strip of queries, all [keys, W]
//         s = k q,  t = k uq + uk q,  p = v do,  u = uv do
//         dropout: p = u = 0 where a weight goes
//         (`sum`: the sums of a row, if it is all here; otherwise a walk of its
//         own has found them, which ends here)
//         w, change of w, gradients of s: first and this one     in place
//         dropout: w = its change = 0 where a weight goes
//         d_o[E, W] += v^T change + uv^T w             along the keys
//         dq[D, W] += k^T this + uk^T first
//         d_bias += this
//       dv[keys, E] += change do                       along the queries
//       dk[keys, D] += this q + first uq
#if defined(POLYATTN_KERNELS_DENSE_DOUBLE_TILE_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_DENSE_DOUBLE_TILE_INL_H_
#undef POLYATTN_KERNELS_DENSE_DOUBLE_TILE_INL_H_
#else
#define POLYATTN_KERNELS_DENSE_DOUBLE_TILE_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "core/double_plan.h"
#include "core/kernels/dense/backward_sums-inl.h"
#include "core/kernels/dense/bias_sums-inl.h"
#include "core/kernels/dense/double_pass-inl.h"
#include "core/kernels/dense/dropout-inl.h"
#include "core/kernels/pack-inl.h"
#include "core/kernels/panels-inl.h"
#include "core/kernels/tile-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

// What all tasks of a call share.
template <typename T>
struct DoubleCall {
  const Problem& p;
  const DoublePlan& plan;
  const AttentionDoubleInputs& in;
  const AttentionDoubleGradients& out;
  // Those of q, k, v and the bias are summed as those of backward are.
  const BackwardCall<T>& sums;
  WeightParams<T> params;

  bool scores_change() const { return in.uq || in.uk || in.u_bias; }
  bool score_grads() const { return out.dq || out.dk || out.d_bias; }
};

template <typename T>
class DoubleTile {
 public:
  DoubleTile(const DoubleCall<T>& call, const DoubleScratch<T>& scratch,
             const DoubleStorage<T>& storage, std::int64_t pair)
      : call_(call),
        p_(call.p),
        scratch_(scratch),
        storage_(storage),
        dropper_(call.p),
        part_(call.plan.bias.part_of(pair, p_.kv_heads)),
        masked_(p_.in.mask || p_.in.bias),
        b_(pair / p_.kv_heads),
        g_(pair % p_.kv_heads),
        seq_(p_.sequence(b_)) {}

  // Adds what a tile of the grid has to the gradients.
  void Run(const DoubleAccumulators<T>& sums, const PairSums<T>& key_sums,
           std::int64_t q_chunk, std::int64_t k_chunk) {
    sums_ = &sums;
    key_sums_ = &key_sums;
    const Range q = ChunkRange(q_chunk, call_.plan.q_chunk, seq_.n);
    const Range k = ChunkRange(k_chunk, call_.plan.k_chunk, seq_.m);
    if (q.empty() || k.empty()) return;
    const std::int64_t group = p_.heads / p_.kv_heads;
    for (member_ = 0; member_ < group; ++member_) {
      h_ = g_ * group + member_;
      for (begin_ = q.begin; begin_ < q.end; begin_ += rows_) {
        rows_ = q.end - begin_;
        if (rows_ > call_.plan.q_block) rows_ = call_.plan.q_step;
        QueryBlock(k);
      }
    }
  }

  // The sums of rows `begin` .. of head h, for the walk that follows.
  void FindSums(std::int64_t h, std::int64_t begin) {
    sums_first_ = true;
    h_ = h;
    begin_ = begin;
    rows_ = std::min(call_.plan.q_step, seq_.n - begin);
    if (rows_ <= 0) return;
    QueryBlock({0, seq_.m});
    for (std::int64_t r = 0; r < rows_; ++r)
      storage_.pulls[p_.row_index(b_, h_, begin_ + r)] = {
          scratch_.tangent[r], scratch_.delta[r], scratch_.rho[r]};
  }

 private:
  static constexpr std::int64_t kW = kStrip<T>;

  // Keys of a block that some row of a strip sees, behind `skipped` others.
  struct Part {
    KeyRange keys;
    std::int64_t skipped;
    std::int64_t count() const { return keys.count(); }
  };

  std::int64_t strips() const { return (rows_ + kW - 1) / kW; }
  std::int64_t strip_rows(std::int64_t s) const {
    return std::min(kW, rows_ - s * kW);
  }
  RowBuffer<T> buffer() const { return {scratch_.rows, scratch_.row_width}; }

  RowSource Source(const ConstTensor& t, std::int64_t row) const {
    return {&t,
            row_offset(t.stride, seq_.batch, h_, seq_.q_begin + begin_ + row)};
  }

  void QueryBlock(const Range& keys) {
    LoadRows();
    const KeyRange seen = KeyRange{keys.begin, keys.end}.within(
        p_.keys_of_any(seq_, begin_, rows_));
    if (seen.empty()) return;
    PackQueries();
    for (std::int64_t j = seen.begin; j < seen.end; j += call_.plan.k_block)
      KeyBlock(j, std::min(call_.plan.k_block, seen.end - j));
  }

  void LoadRows() {
    const double factor = call_.params.gain * dropper_.factor();
    for (std::int64_t r = 0; r < strips() * kW; ++r) {
      RowState row{};
      RowPull<T> pull{};
      if (r < rows_) {
        const std::int64_t at = p_.row_index(b_, h_, begin_ + r);
        row = call_.in.rows[at];
        if (call_.plan.sums_first && !sums_first_) pull = storage_.pulls[at];
      }
      scratch_.shift[r] = static_cast<T>(row.shift * call_.params.score_factor);
      scratch_.scale[r] = static_cast<T>(row.scale * factor);
      scratch_.tangent[r] = pull.tangent;
      scratch_.delta[r] = pull.delta;
      scratch_.rho[r] = pull.rho;
      scratch_.sums[r] = {};
    }
  }

  void PackQueries() {
    const T scale = static_cast<T>(p_.scale * call_.params.score_factor);
    Columns(p_.in.q, p_.d, scale, scratch_.q_columns);
    if (call_.in.uq) Columns(*call_.in.uq, p_.d, scale, scratch_.uq_columns);
    if (call_.in.d_o) {
      Columns(*call_.in.d_o, p_.e, T{1}, scratch_.do_columns);
      for (std::int64_t s = 0; s < strips(); ++s)
        ScaleLanes(scratch_.do_columns + s * kW * p_.e, p_.e,
                   scratch_.scale + s * kW);
    }
    if (sums_first_) return;
    for (std::int64_t r = 0; r < rows_; ++r) {
      if (call_.out.dk) {
        const T own = static_cast<T>(p_.scale);
        Panels(p_.in.q, r, p_.d, own, scratch_.q_panels);
        if (call_.in.uq) Panels(*call_.in.uq, r, p_.d, own, scratch_.uq_panels);
      }
      if (call_.out.dv)
        Panels(*call_.in.d_o, r, p_.e, scratch_.scale[r], scratch_.do_panels);
    }
  }

  void Columns(const ConstTensor& t, std::int64_t width, T scale, T* to) {
    for (std::int64_t s = 0; s < strips(); ++s)
      PackColumns<T>(Source(t, s * kW), strip_rows(s), width, scale, buffer(),
                     to + s * kW * width);
  }

  void Panels(const ConstTensor& t, std::int64_t r, std::int64_t width, T scale,
              T* to) {
    PackPanels<T>(Source(t, r), width, scale, call_.plan.q_block, to + r * kW);
  }

  // Rows of a block of keys, where they lie or brought together.
  struct KeyViews {
    RowsView<T> k, v, uk, uv;
    KeyViews from(std::int64_t row) const {
      const auto at = [&](const RowsView<T>& t) -> RowsView<T> {
        return {t.data + row * t.ld, t.ld};
      };
      return {at(k), at(v), at(uk), at(uv)};
    }
  };

  RowsView<T> View(const std::optional<ConstTensor>& t, std::int64_t j,
                   std::int64_t count, bool copy, T* to) const {
    if (!t) return {scratch_.rows, 0};
    return KeyRows<T>(*t, seq_, g_, j, count, copy, to);
  }

  void KeyBlock(std::int64_t j, std::int64_t count) {
    const DoublePlan& plan = call_.plan;
    const KeyViews keys = {
        View(p_.in.k, j, count, plan.copy_k, scratch_.k),
        View(p_.in.v, j, count, plan.copy_v, scratch_.v),
        View(call_.in.uk, j, count, plan.copy_uk, scratch_.uk),
        View(call_.in.uv, j, count, plan.copy_uv, scratch_.uv)};
    for (std::int64_t s = 0; s < strips(); ++s) {
      if (strip_rows(s) > kLanes<T>) {
        Strip<kStripVectors>(s, j, count, keys);
      } else {
        Strip<1>(s, j, count, keys);
      }
    }
    if (sums_first_) return;
    const auto from = [&](const RowsAt<T>& rows) {
      return RowsAt<T>{rows.data + j * rows.ld, rows.ld};
    };
    const RowsAt<T> dk = from(key_sums_->dk()), dv = from(key_sums_->dv());
    if (call_.out.dv && call_.scores_change())
      AlongQueries(count, p_.e, scratch_.tangents, scratch_.do_panels, dv);
    if (call_.out.dk)
      AlongQueries(count, p_.d, scratch_.pulls, scratch_.q_panels, dk);
    if (call_.out.dk && call_.in.uq)
      AlongQueries(count, p_.d, scratch_.grads, scratch_.uq_panels, dk);
  }

  // c[keys, width] += a[keys, queries] b.
  void AlongQueries(std::int64_t keys, std::int64_t width, const T* a,
                    const T* b, const RowsAt<T>& c) const {
    RowsByPanels<Walk::kAlongRows, T>(keys, rows_, width,
                                      call_.plan.q_block * kW,
                                      {.a = a,
                                       .lda = scratch_.ld,
                                       .b = b,
                                       .ldb = kW,
                                       .c = c.data,
                                       .ldc = c.ld},
                                      true);
  }

  // What rows i .. of a strip see of the block of `count` keys from j on.
  Part PartOf(std::int64_t i, std::int64_t rows, std::int64_t j,
              std::int64_t count) const {
    const KeyRange keys =
        KeyRange{j, j + count}.within(p_.keys_of_any(seq_, i, rows));
    return {keys, keys.empty() ? 0 : keys.begin - j};
  }

  template <int NV>
  void Strip(std::int64_t s, std::int64_t j, std::int64_t count,
             const KeyViews& block) {
    const std::int64_t i = begin_ + s * kW;
    const Part part = PartOf(i, strip_rows(s), j, count);
    const KeyViews keys = block.from(part.skipped);
    Scores<NV>(s, part, keys);
    if (dropper_.on()) {
      dropper_.template Find<NV>(
          {b_, h_, i, strip_rows(s), part.keys.begin, part.count()},
          scratch_.dropped);
      Drop<NV>(s, part, scratch_.grads);
      Drop<NV>(s, part, scratch_.pulls);
    }
    if (sums_first_ || (call_.plan.sums && !call_.plan.sums_first))
      AddSums(s, part);
    if (sums_first_) return;
    ForSpans(s, part, [&](const DoubleArgs<T>& args) {
      RunDoublePass(call_.params, args);
    });
    if (dropper_.on()) {
      Drop<NV>(s, part, scratch_.weights);
      Drop<NV>(s, part, scratch_.tangents);
    }
    ClearOutside(s, part, count);
    AlongKeys<NV>(s, part, keys);
  }

  T* Matrix(T* matrix, std::int64_t s, const Part& part) const {
    return matrix + s * kW + part.skipped * scratch_.ld;
  }

  // s, t, p and u.
  template <int NV>
  void Scores(std::int64_t s, const Part& part, const KeyViews& keys) {
    const T* q = scratch_.q_columns + s * kW * p_.d;
    const T* uq = scratch_.uq_columns + s * kW * p_.d;
    const T* d_o = scratch_.do_columns + s * kW * p_.e;
    Product<NV>(s, part, keys.k, p_.d, q, scratch_.weights, false);
    const bool by_key = call_.in.uk.has_value();
    if (call_.in.uq)
      Product<NV>(s, part, keys.k, p_.d, uq, scratch_.tangents, false);
    if (by_key)
      Product<NV>(s, part, keys.uk, p_.d, q, scratch_.tangents,
                  call_.in.uq.has_value());
    if (!call_.in.uq && !by_key) Clear(s, part, scratch_.tangents);
    if (call_.in.u_bias) AddBiasChange(s, part);
    // A `sum` needs them for the output alone, too, as zeros.
    if (call_.score_grads()) {
      Product<NV>(s, part, keys.v, p_.e, d_o, scratch_.grads, false);
    } else {
      Clear(s, part, scratch_.grads);
    }
    if (call_.score_grads() && call_.in.uv) {
      Product<NV>(s, part, keys.uv, p_.e, d_o, scratch_.pulls, false);
    } else {
      Clear(s, part, scratch_.pulls);
    }
  }

  // c[keys, W] (+)= rows b.
  template <int NV>
  void Product(std::int64_t s, const Part& part, const RowsView<T>& rows,
               std::int64_t depth, const T* b, T* c, bool accumulate) const {
    Rows<NV, Walk::kAlongRows, T>(part.count(), depth,
                                  {.a = rows.data,
                                   .lda = rows.ld,
                                   .b = b,
                                   .ldb = kW,
                                   .c = Matrix(c, s, part),
                                   .ldc = scratch_.ld},
                                  accumulate);
  }

  void Clear(std::int64_t s, const Part& part, T* matrix) const {
    T* row = Matrix(matrix, s, part);
    for (std::int64_t r = 0; r < part.count(); ++r, row += scratch_.ld)
      std::fill_n(row, kW, T{0});
  }

  template <int NV>
  void Drop(std::int64_t s, const Part& part, T* matrix) const {
    ZeroDropped<NV>(scratch_.dropped, part.count(), Matrix(matrix, s, part),
                    scratch_.ld);
  }

  // t += u_bias, in units of the scores.
  void AddBiasChange(std::int64_t s, const Part& part) {
    const Tag<T> d;
    Problem change = p_;
    change.in.bias = call_.in.u_bias;
    change.in.mask.reset();
    change.causal = Causal::kNone;
    change.window = {};
    FillBiasPanel<T>(
        change,
        {b_, h_, begin_ + s * kW, strip_rows(s), part.keys.begin, part.count()},
        buffer(), scratch_.bias);
    const auto factor = hn::Set(d, static_cast<T>(call_.params.score_factor));
    T* row = Matrix(scratch_.tangents, s, part);
    for (std::int64_t r = 0; r < part.count(); ++r, row += scratch_.ld) {
      for (int v = 0; v < kStripVectors; ++v) {
        const auto b = hn::Load(d, scratch_.bias + r * kW + v * kLanes<T>);
        T* to = row + v * kLanes<T>;
        hn::StoreU(hn::MulAdd(b, factor, hn::LoadU(d, to)), d, to);
      }
    }
  }

  // The sums of a strip over these keys, and what they make up so far.
  void AddSums(std::int64_t s, const Part& part) {
    DoubleLanes<T> lanes = {};
    ForSpans(s, part, [&](DoubleArgs<T> args) {
      args.lanes = &lanes;
      RunSumPass(call_.params, args);
    });
    for (std::int64_t x = 0; x < strip_rows(s); ++x) {
      const std::int64_t r = s * kW + x;
      DoubleSums& sums = scratch_.sums[r];
      sums.tangent += static_cast<double>(lanes.tangent[x]);
      sums.pull += static_cast<double>(lanes.pull[x]);
      sums.mixed += static_cast<double>(lanes.mixed[x]);
      // p and u hold the factor of dropout, and c with its sign.
      const double c = call_.in.rows[p_.row_index(b_, h_, begin_ + r)].scale *
                       std::abs(call_.params.gain);
      const double tangent = c * sums.tangent, delta = c * sums.pull;
      scratch_.tangent[r] = static_cast<T>(tangent);
      scratch_.delta[r] = static_cast<T>(delta);
      scratch_.rho[r] = static_cast<T>(c * sums.mixed - 2 * delta * tangent);
    }
  }

  // Calls f with the keys that all rows of the strip see, and with those that
  // need a mask or a bias.
  template <typename F>
  void ForSpans(std::int64_t s, const Part& part, const F& f) {
    KeyRange clean = {part.keys.begin, part.keys.begin};
    if (!masked_) {
      const KeyRange all = p_.keys_of_all(seq_, begin_ + s * kW, strip_rows(s))
                               .within(part.keys);
      if (!all.empty()) clean = all;
    }
    Span(s, part, {part.keys.begin, clean.begin}, true, f);
    Span(s, part, clean, false, f);
    Span(s, part, {clean.end, part.keys.end}, true, f);
  }

  template <typename F>
  void Span(std::int64_t s, const Part& part, const KeyRange& keys, bool masked,
            const F& f) {
    if (keys.empty()) return;
    const std::int64_t at = (keys.begin - part.keys.begin) * scratch_.ld;
    const auto panel = [&](T* matrix) { return Matrix(matrix, s, part) + at; };
    const std::int64_t rows = keys.end - keys.begin;
    f(DoubleArgs<T>{.s = panel(scratch_.weights),
                    .t = panel(scratch_.tangents),
                    .p = panel(scratch_.grads),
                    .u = panel(scratch_.pulls),
                    .ld = scratch_.ld,
                    .rows = rows,
                    .bias = masked ? MaskPanel(s, keys.begin, rows) : nullptr,
                    .score_factor = static_cast<T>(call_.params.score_factor),
                    .shift = scratch_.shift + s * kW,
                    .tangent = scratch_.tangent + s * kW,
                    .delta = scratch_.delta + s * kW,
                    .rho = scratch_.rho + s * kW,
                    .lanes = nullptr});
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

  // dk and dv are summed over all strips: zeros in those keys of a block that
  // this one does not see.
  void ClearOutside(std::int64_t s, const Part& part,
                    std::int64_t count) const {
    for (T* matrix : {scratch_.tangents, scratch_.grads, scratch_.pulls}) {
      for (std::int64_t r = 0; r < count; ++r) {
        if (r == part.skipped) r += part.count();
        if (r < count) std::fill_n(matrix + r * scratch_.ld + s * kW, kW, T{0});
      }
    }
  }

  // What goes to the queries of a strip.
  template <int NV>
  void AlongKeys(std::int64_t s, const Part& part, const KeyViews& keys) {
    const std::int64_t row = member_ * sums_->head_rows + begin_ + s * kW;
    const auto add = [&](const RowsView<T>& rows, std::int64_t width, T* matrix,
                         T* to) {
      Rows<NV, Walk::kDownColumns, T>(width, part.count(),
                                      {.a = rows.data,
                                       .lda = rows.ld,
                                       .b = Matrix(matrix, s, part),
                                       .ldb = scratch_.ld,
                                       .c = to + row * width,
                                       .ldc = kW},
                                      true);
    };
    if (call_.out.d_o && call_.scores_change())
      add(keys.v, p_.e, scratch_.tangents, sums_->d_o);
    if (call_.out.d_o && call_.in.uv)
      add(keys.uv, p_.e, scratch_.weights, sums_->d_o);
    if (call_.out.dq) add(keys.k, p_.d, scratch_.pulls, sums_->dq);
    if (call_.out.dq && call_.in.uk)
      add(keys.uk, p_.d, scratch_.grads, sums_->dq);
    if (call_.out.d_bias)
      AddScoreGrads<NV>(ScoreGrads<T>{Matrix(scratch_.pulls, s, part),
                                      scratch_.ld, part.count(), strip_rows(s)},
                        call_.plan.bias.keys == 1,
                        BiasSumsOf(p_, call_.plan.bias, storage_.bias, part_,
                                   {b_, h_, begin_ + s * kW, strip_rows(s),
                                    part.keys.begin, part.count()}));
  }

  const DoubleCall<T>& call_;
  const Problem& p_;
  const DoubleScratch<T>& scratch_;
  const DoubleStorage<T>& storage_;
  const Dropper<T> dropper_;
  const std::int64_t part_;
  const bool masked_;
  const std::int64_t b_, g_;
  const Sequence seq_;
  const DoubleAccumulators<T>* sums_ = nullptr;
  const PairSums<T>* key_sums_ = nullptr;
  bool sums_first_ = false;
  std::int64_t member_ = 0, h_ = 0, begin_ = 0, rows_ = 0;
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#endif
