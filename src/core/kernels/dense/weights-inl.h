// The element-wise part of forward: scores to weights, in place, a strip at a
// time, with the row sums that normalisation and statistics need. A strip is a
// panel s[j, lane]: a row for each key, a lane for each query, so that
// everything that belongs to a query is lane-wise.
#if defined(POLYATTN_KERNELS_DENSE_WEIGHTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_DENSE_WEIGHTS_INL_H_
#undef POLYATTN_KERNELS_DENSE_WEIGHTS_INL_H_
#else
#define POLYATTN_KERNELS_DENSE_WEIGHTS_INL_H_
#endif

#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/kernels/dense/weight_fns-inl.h"
#include "core/kernels/tile-inl.h"
#include "core/weights.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

// Part of a strip: `rows` keys.
template <typename T>
struct PassArgs {
  T* s;  // [rows, ld]: scores in, weights out
  std::int64_t ld;
  std::int64_t rows;
  const T* bias;      // [rows, kStrip], or null; -inf removes the key
  T bias_scale;       // 1, or log2(e) where scores come times that
  const T* shift;     // [kStrip], subtracted from the scores
  LaneSums<T>* sums;  // added to
};

// s += bias, and the largest of every lane into `top`.
template <typename T>
HWY_NOINLINE void MaxPass(const PassArgs<T>& a, T* HWY_RESTRICT top) {
  const Tag<T> d;
  constexpr int L = kLanes<T>, NV = kStripVectors;
  VecOf<T> m[NV];
  POLYATTN_UNROLL
  for (int v = 0; v < NV; ++v) m[v] = hn::Load(d, top + v * L);
  const auto scale = hn::Set(d, a.bias_scale);
  T* row = a.s;
  const std::int64_t rows = a.rows, ld = a.ld;
  for (std::int64_t j = 0; j < rows; ++j, row += ld) {
    POLYATTN_UNROLL
    for (int v = 0; v < NV; ++v) {
      T* HWY_RESTRICT p = row + v * L;
      auto x = hn::LoadU(d, p);
      if (a.bias != nullptr) {
        const auto b = hn::Load(d, a.bias + j * kStrip<T> + v * L);
        x = hn::MulAdd(b, scale, x);
        hn::StoreU(x, d, p);
      }
      m[v] = hn::Max(m[v], x);
    }
  }
  POLYATTN_UNROLL
  for (int v = 0; v < NV; ++v) hn::Store(m[v], d, top + v * L);
}

// What a pass computes beside the weights.
enum class PassSums {
  kNone,
  kWeight,  // the sum of |w|
  kStats,   // what the statistics need, for a divisor other than `sum`
  kAll,     // both, and what the statistics need for `sum`
};

// The sums of a pass, in registers.
template <typename T>
struct VecSums {
  VecOf<T> weight, weight_sq, derivative_sq, derivative_sq_weight, count, top;
};

// kBias: keys may be removed, by a bias of -inf; softmax comes here after
// MaxPass, which has added the bias to its scores already.
template <bool kBias, PassSums kSums, typename Fn, typename T>
HWY_NOINLINE void WeightPass(const Fn& fn, const PassArgs<T>& a) {
  const Tag<T> d;
  constexpr int L = kLanes<T>, NV = kStripVectors;
  constexpr bool kExp = std::is_same_v<Fn, ExpFn<T>>;
  constexpr bool kStatistics =
      kSums == PassSums::kStats || kSums == PassSums::kAll;
  constexpr bool kTotal = kSums == PassSums::kWeight || kSums == PassSums::kAll;
  const auto masked = hn::Set(d, -std::numeric_limits<T>::infinity());
  const auto one = hn::Set(d, T{1});
  const auto scale = hn::Set(d, a.bias_scale);
  VecOf<T> shift[NV];
  // With braces no constructor of VecSums is called: the compiler's own is not
  // compiled for the target, and cannot take in that of a NEON vector.
  VecSums<T> sums[NV] = {};
  POLYATTN_UNROLL
  for (int v = 0; v < NV; ++v) {
    const auto zero = hn::Zero(d);
    shift[v] = Fn::kShift ? hn::Load(d, a.shift + v * L) : zero;
    sums[v] = {zero, zero, zero, zero, zero, zero};
  }
  T* row = a.s;
  const T* bias = a.bias;
  const std::int64_t rows = a.rows, ld = a.ld;
  for (std::int64_t j = 0; j < rows; ++j, row += ld) {
    POLYATTN_UNROLL
    for (int v = 0; v < NV; ++v) {
      T* HWY_RESTRICT p = row + v * L;
      VecSums<T>& sum = sums[v];
      auto x = hn::LoadU(d, p);
      auto seen = hn::Eq(one, one);
      if constexpr (kBias && kExp) {
        seen = hn::Not(hn::Eq(x, masked));
      } else if constexpr (kBias) {
        const auto b = hn::Load(d, bias + j * kStrip<T> + v * L);
        seen = hn::Not(hn::Eq(b, masked));
        x = hn::MulAdd(b, scale, x);
      }
      const auto z = Fn::kShift ? hn::Sub(x, shift[v]) : x;
      VecOf<T> w, dw;
      if constexpr (kStatistics) {
        fn.Both(z, w, dw);
      } else {
        w = fn.Weight(z);
      }
      if constexpr (kBias) {
        w = hn::IfThenElseZero(seen, w);
        sum.count = hn::Add(sum.count, hn::IfThenElseZero(seen, one));
      }
      hn::StoreU(w, d, p);
      const auto absw = kExp ? w : hn::Abs(w);
      if constexpr (kTotal) sum.weight = hn::Add(sum.weight, absw);
      if constexpr (kStatistics) {
        auto absx = hn::Abs(x);
        if constexpr (kBias) {
          dw = hn::IfThenElseZero(seen, dw);
          absx = hn::IfThenElseZero(seen, absx);
        }
        sum.top = hn::Max(sum.top, absx);
        sum.weight_sq = hn::MulAdd(w, w, sum.weight_sq);
        sum.derivative_sq = hn::MulAdd(dw, dw, sum.derivative_sq);
        if constexpr (kTotal)
          sum.derivative_sq_weight =
              hn::MulAdd(hn::Mul(dw, dw), absw, sum.derivative_sq_weight);
      }
    }
  }
  if constexpr (!kBias && kSums == PassSums::kNone) return;
  POLYATTN_UNROLL
  for (int v = 0; v < NV; ++v) {
    const auto add = [&](T* to, VecOf<T> x) POLYATTN_LAMBDA {
      hn::Store(hn::Add(hn::Load(d, to + v * L), x), d, to + v * L);
    };
    LaneSums<T>& to = *a.sums;
    add(to.weight, sums[v].weight);
    add(to.weight_sq, sums[v].weight_sq);
    add(to.derivative_sq, sums[v].derivative_sq);
    add(to.derivative_sq_weight, sums[v].derivative_sq_weight);
    add(to.count, sums[v].count);
    hn::Store(hn::Max(hn::Load(d, to.top_score + v * L), sums[v].top), d,
              to.top_score + v * L);
  }
}

// Chooses the instance of WeightPass. Only the functions that are a few
// instructions themselves have one without the sums.
template <typename T>
HWY_INLINE void RunWeightPass(const WeightParams<T>& params, bool stats,
                              const PassArgs<T>& a) {
  WithWeightFn<T>(params, [&](auto fn) POLYATTN_LAMBDA {
    using Fn = decltype(fn);
    const auto run = [&]<PassSums kSums>() POLYATTN_LAMBDA {
      a.bias != nullptr ? WeightPass<true, kSums>(fn, a)
                        : WeightPass<false, kSums>(fn, a);
    };
    if constexpr (Fn::kCheap) {
      if (!params.sum && stats)
        return run.template operator()<PassSums::kStats>();
      if (!params.sum) return run.template operator()<PassSums::kNone>();
    }
    if constexpr (Fn::kCheap || std::is_same_v<Fn, ExpFn<T>>) {
      if (!stats) return run.template operator()<PassSums::kWeight>();
    }
    run.template operator()<PassSums::kAll>();
  });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#endif
