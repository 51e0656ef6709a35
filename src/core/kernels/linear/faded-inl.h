// What is dense in causal attention with decay: a chunk of queries with the
// keys of the same chunk. Weights come in panels [keys, kStripTokens], a lane
// for each query of a strip:
//
//   for each strip of queries, at times t0, t0 + 1, ...
//     for each block of the keys up to t0
//       s = K q;  w = phi(s) by_query by_key     fades: a product of two
//     for the keys after t0, fewer than a strip
//       s = K q;  w = phi(s) table               fades: products of factors
//     sums += w^T V
//
// by_query is the product of the factors from t0 + 1 to the time of the query,
// by_key that from behind the key to t0: no factor is ever divided by, so that
// none of them is too small, and 0 is a reset. Backward does the same with the
// gradients of the weights, V d, beside the weights.
//
// Cost: as the dense kernels, and two multiplications for a weight.
#if defined(POLYATTN_KERNELS_LINEAR_FADED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_LINEAR_FADED_INL_H_
#undef POLYATTN_KERNELS_LINEAR_FADED_INL_H_
#else
#define POLYATTN_KERNELS_LINEAR_FADED_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "core/kernels/dense/weight_fns-inl.h"
#include "core/kernels/linear/call-inl.h"
#include "core/kernels/linear/dense-inl.h"
#include "core/kernels/tile-inl.h"
#include "core/weights.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

// Panels of `rows` keys and the first `lanes` queries of a strip.
template <typename T>
struct FadeArgs {
  T* s;  // scores in, weights out
  T* g;  // kGrads: gradients of the weights in, of the scores out
  std::int64_t rows, lanes;
  const T* by_query;  // [kStripTokens]
  const T* by_key;    // [rows]
  const T* table;     // [rows, kStripTokens]: the fades, or null
};

// Where the fade is 0 the weight is 0, whatever the score.
template <bool kGrads, bool kTable, typename Fn, typename T>
HWY_NOINLINE void FadePass(const Fn& fn, const FadeArgs<T>& a) {
  const Tag<T> d;
  for (std::int64_t j = 0; j < a.rows; ++j) {
    const auto key = hn::Set(d, kTable ? T{1} : a.by_key[j]);
    for (std::int64_t c = 0; c < a.lanes; c += kLanes<T>) {
      const std::int64_t at = j * kStripTokens + c;
      const auto fade = kTable ? hn::LoadU(d, a.table + at)
                               : hn::Mul(hn::LoadU(d, a.by_query + c), key);
      const auto gone = hn::Eq(fade, hn::Zero(d));
      const auto x = hn::LoadU(d, a.s + at);
      if constexpr (kGrads) {
        VecOf<T> w, dw;
        fn.Both(x, w, dw);
        const auto grad = hn::Mul(hn::Mul(dw, fade), hn::LoadU(d, a.g + at));
        hn::StoreU(hn::IfThenZeroElse(gone, hn::Mul(w, fade)), d, a.s + at);
        hn::StoreU(hn::IfThenZeroElse(gone, grad), d, a.g + at);
      } else {
        const auto w = hn::Mul(fn.Weight(x), fade);
        hn::StoreU(hn::IfThenZeroElse(gone, w), d, a.s + at);
      }
    }
  }
}

// Chooses the instance of FadePass, for a polynomial.
template <bool kGrads, typename T>
HWY_INLINE void RunFadePass(const WeightParams<T>& params,
                            const FadeArgs<T>& a) {
  WithPolynomialFn<T>(params, [&](auto fn) POLYATTN_LAMBDA {
    a.table != nullptr ? FadePass<kGrads, true>(fn, a)
                       : FadePass<kGrads, false>(fn, a);
  });
}

// A chunk of a pair, whose keys it loads.
template <typename T>
class FadedChunk {
 public:
  FadedChunk(const LinearCall<T>& call, const LinearTask<T>& task,
             const FadedScratch<T>& w, const HeadOf& head, const Chunk& chunk)
      : call_(call),
        p_(call.p),
        plan_(call.plan),
        task_(task),
        w_(w),
        chunk_(chunk),
        params_(make_weight_params<T>(p_.activation)),
        factor_(call.storage.decay.factor +
                call.storage.decay.index(head.seq, head.key, chunk.k0)) {
    task_.rows.LoadKeyRows(head, chunk_.k0, chunk_.keys(), w_.k, w_.k_width);
    task_.rows.LoadValueRows(head, chunk_.k0, chunk_.keys(), w_.v);
  }

  // w.sums[queries, width] of the chunk's own keys.
  void Forward(const HeadOf& head) const {
    for (std::int64_t i = chunk_.q0; i < chunk_.q1; i += kStripTokens) {
      const Strip strip = At(i);
      T* to = w_.sums + (i - chunk_.q0) * plan_.width;
      std::fill_n(to, strip.count * plan_.width, T{0});
      task_.rows.LoadQueries(head, i, strip.count, task_.w.strip_x,
                             kStripTokens);
      InBlocks(strip, [&](std::int64_t j, const FadeArgs<T>& a) {
        Scores(j, a.rows, strip.lanes);
        RunFadePass<false>(params_, a);
        RowsByPanels<Walk::kDownColumns, T>(strip.count, a.rows, plan_.columns,
                                            kStrip<T>,
                                            {.a = w_.weights,
                                             .lda = kStripTokens,
                                             .b = w_.v + j * plan_.width,
                                             .ldb = plan_.width,
                                             .c = to,
                                             .ldc = plan_.width},
                                            true);
      });
    }
  }

  // strip_dx += the gradients by the queries from i on, times the scale.
  void AddQueryGrads(const HeadOf& head, std::int64_t i) const {
    const Strip strip = At(i);
    LoadStrip(head, strip);
    InBlocks(strip, [&](std::int64_t j, const FadeArgs<T>& a) {
      Weights(j, a, strip);
      RowsByPanels<Walk::kDownColumns, T>(p_.d, a.rows, strip.lanes, kStrip<T>,
                                          {.a = w_.k + j * w_.k_width,
                                           .lda = w_.k_width,
                                           .b = w_.grads,
                                           .ldb = kStripTokens,
                                           .c = task_.w.strip_dx,
                                           .ldc = kStripTokens},
                                          true);
    });
  }

  // w.dk[keys, k_width] and w.sums[keys, width], the gradients by the values:
  // of nothing yet, and those of one head more.
  void ClearKeyGrads() const {
    std::fill_n(w_.dk, chunk_.keys() * w_.k_width, T{0});
    std::fill_n(w_.sums, chunk_.keys() * plan_.width, T{0});
  }
  void AddKeyGrads(const HeadOf& head) const {
    const std::int64_t row_width = task_.w.row_width;
    for (std::int64_t i = chunk_.q0; i < chunk_.q1; i += kStripTokens) {
      const Strip strip = At(i);
      LoadStrip(head, strip);
      task_.rows.LoadQueryRows(head, i, strip.count, w_.q, w_.k_width);
      InBlocks(strip, [&](std::int64_t j, const FadeArgs<T>& a) {
        Weights(j, a, strip);
        RowsByPanels<Walk::kAlongRows, T>(a.rows, strip.count, plan_.columns,
                                          kStrip<T>,
                                          {.a = w_.weights,
                                           .lda = kStripTokens,
                                           .b = task_.w.rows,
                                           .ldb = row_width,
                                           .c = w_.sums + j * plan_.width,
                                           .ldc = plan_.width},
                                          true);
        RowsByPanels<Walk::kAlongRows, T>(a.rows, strip.count, p_.d, kStrip<T>,
                                          {.a = w_.grads,
                                           .lda = kStripTokens,
                                           .b = w_.q,
                                           .ldb = w_.k_width,
                                           .c = w_.dk + j * w_.k_width,
                                           .ldc = w_.k_width},
                                          true);
      });
    }
  }

 private:
  struct Strip {
    std::int64_t i, count, lanes;
    std::int64_t time;  // of the first query, from the chunk's beginning
    std::int64_t old;   // keys up to that time
    std::int64_t seen;  // keys that the last query sees
  };

  Strip At(std::int64_t i) const {
    const std::int64_t count = std::min(kStripTokens, chunk_.q1 - i);
    const std::int64_t time = chunk_.lead + i - chunk_.q0;
    return {.i = i,
            .count = count,
            .lanes = ceil_div(count, kLanes<T>) * kLanes<T>,
            .time = time,
            .old = std::min(chunk_.keys(), time + 1),
            .seen = std::min(chunk_.keys(), time + count)};
  }

  // Of the key at a time of the chunk; behind the last key nothing fades.
  double Factor(std::int64_t t) const {
    return t < chunk_.keys() ? factor_[t] : 1;
  }

  // Calls f(first key, fades) for the strip's keys, block by block.
  template <typename F>
  void InBlocks(const Strip& strip, F&& f) const {
    FindFades(strip);
    FadeArgs<T> a = {.s = w_.weights,
                     .g = w_.grads,
                     .rows = 0,
                     .lanes = strip.lanes,
                     .by_query = w_.by_query,
                     .by_key = w_.by_key,
                     .table = nullptr};
    for (std::int64_t j = 0; j < strip.old; j += a.rows) {
      a.rows = std::min(kFadedKeys, strip.old - j);
      a.by_key = w_.by_key + j;
      f(j, a);
    }
    a.rows = strip.seen - strip.old;
    a.table = w_.table;
    if (a.rows > 0) f(strip.old, a);
  }

  void FindFades(const Strip& strip) const {
    double fade = 1;
    for (std::int64_t j = strip.old - 1; j >= 0; --j) {
      w_.by_key[j] = static_cast<T>(fade);
      fade *= factor_[j];
    }
    fade = params_.gain;
    for (std::int64_t r = 0; r < kStripTokens; ++r) {
      if (r > 0) fade *= Factor(strip.time + r);
      w_.by_query[r] = static_cast<T>(fade);
    }
    for (std::int64_t j = strip.old; j < strip.seen; ++j) {
      T* row = w_.table + (j - strip.old) * kStripTokens;
      fade = params_.gain;
      for (std::int64_t r = 0; r < kStripTokens; ++r) {
        const std::int64_t t = strip.time + r;
        if (t > j) fade *= Factor(t);
        row[r] = t < j ? T{0} : static_cast<T>(fade);
      }
    }
  }

  // Queries, and gradients of their sums, as columns; the latter as rows too.
  void LoadStrip(const HeadOf& head, const Strip& strip) const {
    task_.rows.LoadQueries(head, strip.i, strip.count, task_.w.strip_x,
                           kStripTokens);
    task_.rows.LoadGradColumns(head, *call_.back, strip.i, strip.count);
  }

  void Scores(std::int64_t j, std::int64_t rows, std::int64_t lanes) const {
    RowsByPanels<Walk::kAlongRows, T>(rows, p_.d, lanes, kStrip<T>,
                                      {.a = w_.k + j * w_.k_width,
                                       .lda = w_.k_width,
                                       .b = task_.w.strip_x,
                                       .ldb = kStripTokens,
                                       .c = w_.weights,
                                       .ldc = kStripTokens},
                                      false);
  }

  // Weights and gradients of scores.
  void Weights(std::int64_t j, const FadeArgs<T>& a, const Strip& strip) const {
    Scores(j, a.rows, strip.lanes);
    RowsByPanels<Walk::kAlongRows, T>(a.rows, plan_.columns, strip.lanes,
                                      kStrip<T>,
                                      {.a = w_.v + j * plan_.width,
                                       .lda = plan_.width,
                                       .b = task_.w.strip_d,
                                       .ldb = kStripTokens,
                                       .c = w_.grads,
                                       .ldc = kStripTokens},
                                      false);
    RunFadePass<true>(params_, a);
  }

  const LinearCall<T>& call_;
  const Problem& p_;
  const LinearPlan& plan_;
  const LinearTask<T>& task_;
  const FadedScratch<T>& w_;
  const Chunk chunk_;
  const WeightParams<T> params_;
  const double* factor_;  // of the chunk's keys
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#endif
