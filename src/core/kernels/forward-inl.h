// Dense attention, forward: one block of queries of one head against all keys.
// docs/kernels.md derives the algorithm, its cost and its error.
#if defined(POLYATTN_KERNELS_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_FORWARD_INL_H_
#undef POLYATTN_KERNELS_FORWARD_INL_H_
#else
#define POLYATTN_KERNELS_FORWARD_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "core/kernels/pack-inl.h"
#include "core/kernels/panels-inl.h"
#include "core/kernels/tile-inl.h"
#include "core/kernels/weights-inl.h"
#include "core/plan.h"
#include "core/visibility.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

template <typename T>
class ForwardBlock {
 public:
  ForwardBlock(const Problem& p, const ForwardPlan& plan,
               const AttentionResults& results,
               const ForwardScratch<T>& scratch)
      : p_(p),
        plan_(plan),
        results_(results),
        w_(scratch),
        params_(make_weight_params<T>(p.activation)),
        masked_(p.in.mask || p.in.bias),
        stats_(!results.stats.empty()) {}

  // Block number `block` of head h of sequence b. Returns its share of the
  // statistics.
  AttentionStats Run(std::int64_t b, std::int64_t h, std::int64_t block) {
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

  void PackQueries() {
    const T scale = static_cast<T>(p_.scale * params_.score_factor);
    for (std::int64_t s = 0; s < strips(); ++s) {
      const RowSource src = {&p_.in.q,
                             row_offset(p_.in.q.stride, seq_.batch, h_,
                                        seq_.q_begin + begin_ + s * kW)};
      PackColumns<T>(src, strip_rows(s), p_.d, scale, {w_.rows, w_.row_width},
                     w_.q + s * kW * p_.d);
    }
  }

  void StartRows() {
    std::fill_n(w_.sums, strips() * kW, RowSums{});
    const bool log_n = p_.activation.log_n_bias;
    if (log_n) CountKeys();
    for (std::int64_t i = 0; i < strips() * kW; ++i) {
      const double n = std::max(w_.sums[i].count, 1.0);
      w_.shift[i] = params_.form == WeightForm::kExp ? kGone
                    : log_n ? static_cast<T>(std::log2(n))
                            : T{0};
      if (masked_) w_.sums[i].count = 0;
    }
  }

  // sums.count = n of every row, ahead of the pass over the keys.
  void CountKeys() {
    double counts[kMaxStrip];
    for (std::int64_t s = 0; s < strips(); ++s) {
      const std::int64_t i = begin_ + s * kW;
      if (masked_)
        count_keys(p_, {b_, h_, i, strip_rows(s), 0, seq_.m}, w_.rows,
                   w_.row_width, counts);
      for (std::int64_t r = 0; r < strip_rows(s); ++r)
        w_.sums[s * kW + r].count =
            masked_ ? counts[r]
                    : static_cast<double>(p_.causal_limit(seq_, i + r));
    }
  }

  void KeyBlock(std::int64_t j, std::int64_t count) {
    const std::int64_t g = p_.kv_head(h_);
    const RowsView<T> k =
        KeyRows<T>(p_.in.k, seq_, g, j, count, plan_.copy_k, w_.k);
    const RowsView<T> v =
        KeyRows<T>(p_.in.v, seq_, g, j, count, plan_.copy_v, w_.v);
    for (std::int64_t s = 0; s < strips(); ++s) {
      const std::int64_t last = begin_ + s * kW + strip_rows(s) - 1;
      const std::int64_t seen =
          std::clamp<std::int64_t>(p_.causal_limit(seq_, last) - j, 0, count);
      if (seen == 0 && j > 0) continue;
      if (strip_rows(s) > kLanes<T>) {
        Strip<kStripVectors>(s, j, seen, k, v);
      } else {
        Strip<1>(s, j, seen, k, v);
      }
    }
  }

  // Scores, weights and output of `count` keys from j on.
  template <int NV>
  void Strip(std::int64_t s, std::int64_t j, std::int64_t count,
             const RowsView<T>& k, const RowsView<T>& v) {
    T* q = w_.q + s * kW * p_.d;
    T* o = w_.o + s * kW * p_.e;
    Rows<NV, Walk::kAlongRows, T>(count, p_.d,
                                  {k.data, k.ld, q, kW, w_.weights, kW}, false);
    // The first `clean` keys are seen by all rows of the strip.
    const std::int64_t i = begin_ + s * kW;
    const std::int64_t clean =
        masked_
            ? 0
            : std::clamp<std::int64_t>(p_.causal_limit(seq_, i) - j, 0, count);
    if (clean < count) {
      const ScoreBlock rest = {b_,        h_,           i, strip_rows(s),
                               j + clean, count - clean};
      FillBiasPanel<T>(p_, rest, {w_.rows, w_.row_width}, w_.bias);
    }
    LaneSums<T> sums;
    PassArgs<T> all = {.s = w_.weights,
                       .ld = kW,
                       .rows = clean,
                       .bias = nullptr,
                       .bias_scale = static_cast<T>(params_.score_factor),
                       .shift = w_.shift + s * kW,
                       .sums = &sums};
    PassArgs<T> some = all;
    some.s += clean * kW;
    some.rows = count - clean;
    some.bias = w_.bias;
    alignas(64) T safe_shift[kMaxStrip];
    if (params_.form == WeightForm::kExp) {
      alignas(64) T top[kMaxStrip];
      std::copy_n(w_.shift + s * kW, kW, top);
      if (clean > 0) MaxPass<NV>(all, top);
      if (clean < count) MaxPass<NV>(some, top);
      NewShift<NV>(s, j > 0, top, safe_shift);
      all.shift = some.shift = safe_shift;
    }
    if (clean > 0) RunWeightPass<NV>(params_, stats_, all);
    if (clean < count) RunWeightPass<NV>(params_, stats_, some);
    AddSums(s, sums);
    Rows<NV, Walk::kDownColumns, T>(
        p_.e, count, {v.data, v.ld, w_.weights, kW, o, kW}, j > 0);
  }

  // Moves the strip to its new maximum `top`: what has been summed so far is
  // rescaled. A row that has seen nothing yet has -inf, for which 0 serves.
  template <int NV>
  void NewShift(std::int64_t s, bool started, const T* top, T* safe_shift) {
    const Tag<T> d;
    constexpr int L = kLanes<T>;
    T* shift = w_.shift + s * kW;
    alignas(64) T factor[kMaxStrip];
    bool moved = false;
    Unroll<NV>([&](auto v) HWY_ATTR {
      const auto before = hn::Load(d, shift + v * L);
      const auto after = hn::Load(d, top + v * L);
      const auto safe =
          hn::IfThenZeroElse(hn::Eq(after, hn::Set(d, kGone)), after);
      moved |= !hn::AllTrue(d, hn::Eq(before, after));
      hn::Store(Exp2<T>(hn::Sub(before, safe)), d, factor + v * L);
      hn::Store(safe, d, safe_shift + v * L);
      hn::Store(after, d, shift + v * L);
    });
    if (!moved || !started) return;
    for (std::int64_t r = 0; r < NV * L; ++r) {
      const double f = factor[r];
      RowSums& sums = w_.sums[s * kW + r];
      sums.weight *= f;
      sums.weight_sq *= f * f;
      sums.derivative_sq *= f * f;
      sums.derivative_sq_weight *= f * f * f;
    }
    ScaleLanes<NV>(w_.o + s * kW * p_.e, p_.e, factor);
  }

  void AddSums(std::int64_t s, const LaneSums<T>& from) {
    for (std::int64_t r = 0; r < strip_rows(s); ++r) {
      RowSums& to = w_.sums[s * kW + r];
      to.weight += static_cast<double>(from.weight[r]);
      if (masked_) to.count += static_cast<double>(from.count[r]);
      if (!stats_) continue;
      to.weight_sq += static_cast<double>(from.weight_sq[r]);
      to.derivative_sq += static_cast<double>(from.derivative_sq[r]);
      to.derivative_sq_weight +=
          static_cast<double>(from.derivative_sq_weight[r]);
      to.top_score =
          std::max(to.top_score, static_cast<double>(from.top_score[r]));
    }
  }

  AttentionStats Finish() {
    AttentionStats total;
    alignas(64) T scale[kMaxStrip];
    for (std::int64_t s = 0; s < strips(); ++s) {
      for (std::int64_t r = 0; r < strip_rows(s); ++r) {
        const std::int64_t i = s * kW + r;
        const RowState row = EndRow(i, total);
        scale[r] = static_cast<T>(row.scale * params_.gain);
        if (!results_.rows.empty())
          results_.rows[p_.row_index(b_, h_, begin_ + i)] = row;
      }
      const RowTarget dst = {&results_.o,
                             row_offset(results_.o.stride, seq_.batch, h_,
                                        seq_.q_begin + begin_ + s * kW)};
      total.non_finite +=
          UnpackColumns<T>(w_.o + s * kW * p_.e, p_.e, strip_rows(s), scale,
                           {w_.rows, w_.row_width}, dst, stats_);
    }
    return total;
  }

  // What row i of the block ends with; adds its share to the statistics.
  RowState EndRow(std::int64_t i, AttentionStats& total) const {
    const RowSums& sums = w_.sums[i];
    const double n =
        masked_ ? sums.count
                : static_cast<double>(p_.causal_limit(seq_, begin_ + i));
    if (n == 0) return {0, 0};
    RowState row = {0, p_.activation.row_scale(n)};
    if (params_.form == WeightForm::kExp)
      row.shift = static_cast<double>(w_.shift[i]) * std::numbers::ln2;
    if (p_.activation.log_n_bias) row.shift = std::log(n);
    if (params_.sum) {
      const double z = sums.weight * std::abs(params_.gain);
      row.scale = z == 0 ? 0 : 1 / z;
    }
    if (!stats_) return row;
    const double c2 = row.scale * row.scale * params_.gain * params_.gain;
    const double weight_sq = c2 * sums.weight_sq;
    double jacobian_sq = c2 * sums.derivative_sq;
    if (params_.sum)
      jacobian_sq = (1 + weight_sq) * jacobian_sq -
                    2 * c2 * std::sqrt(c2) * sums.derivative_sq_weight;
    total.weight_sq += weight_sq;
    total.jacobian_sq += jacobian_sq;
    total.max_abs_score =
        std::max(total.max_abs_score, sums.top_score / params_.score_factor);
    return row;
  }

  const Problem& p_;
  const ForwardPlan& plan_;
  const AttentionResults& results_;
  const ForwardScratch<T>& w_;
  const WeightParams<T> params_;
  const bool masked_, stats_;
  std::int64_t b_ = 0, h_ = 0, begin_ = 0, rows_ = 0;
  Sequence seq_{};
};

template <typename T>
void RunForward(const Problem& p, const AttentionResults& results,
                std::byte* workspace, Parallel& parallel) {
  const ForwardPlan plan = plan_forward(p, kStrip<T>);
  Arena arena(workspace);
  const ForwardStorage<T> storage(arena, p, plan, parallel.workers());
  const std::int64_t tasks = plan.tasks(p);
  parallel.run(tasks, [&](std::int64_t task, int worker) {
    // Late blocks of a causal sequence are the long ones: they go first.
    const std::int64_t head = task / plan.blocks;
    const std::int64_t block = plan.blocks - 1 - task % plan.blocks;
    const ForwardScratch<T> scratch = storage.rooms.of(worker);
    ForwardBlock<T> run(p, plan, results, scratch);
    const AttentionStats stats = run.Run(head / p.heads, head % p.heads, block);
    storage.stats[head * plan.blocks + block] = stats;
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
