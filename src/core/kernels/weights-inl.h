// The element-wise part of attention: scores to weights, in place, a strip at
// a time, with the row sums that normalisation and statistics need; and the
// same for gradients. A strip is a panel s[j, lane]: a row for each key, a lane
// for each query, so that everything that belongs to a query is lane-wise.
//
// Weights here are without the constant factor of a monomial, sigmoid or relu:
// it goes into the row scale. Scores of softmax and sigmoid come times log2(e),
// so that exp is Exp2.
#if defined(POLYATTN_KERNELS_WEIGHTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_WEIGHTS_INL_H_
#undef POLYATTN_KERNELS_WEIGHTS_INL_H_
#else
#define POLYATTN_KERNELS_WEIGHTS_INL_H_
#endif

#include <cstdint>
#include <limits>

#include "core/kernels/math-inl.h"
#include "core/kernels/tile-inl.h"
#include "core/weights.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

// Each of these gives the weight w at score x (already less the row's shift
// where kShift says so), and its derivative dw in natural units. kCheap: worth
// instances of the passes that compute nothing beside it.
template <typename T, int P>
struct MonomialFn {
  static constexpr bool kShift = false, kCheap = true;
  HWY_INLINE VecOf<T> Weight(VecOf<T> x) const {
    if constexpr (P == 1) return x;
    if constexpr (P == 2) return hn::Mul(x, x);
    if constexpr (P == 3) return hn::Mul(x, hn::Mul(x, x));
    if constexpr (P == 4) {
      const auto x2 = hn::Mul(x, x);
      return hn::Mul(x2, x2);
    }
  }
  HWY_INLINE void Both(VecOf<T> x, VecOf<T>& w, VecOf<T>& dw) const {
    const Tag<T> d;
    if constexpr (P == 1) {
      w = x;
      dw = hn::Set(d, T{1});
    } else {
      const auto lower = MonomialFn<T, P - 1>().Weight(x);
      w = hn::Mul(x, lower);
      dw = hn::Mul(hn::Set(d, T{P}), lower);
    }
  }
};

template <typename T>
struct PolynomialFn {
  static constexpr bool kShift = false, kCheap = false;
  const T* coefficient;
  int degree;
  HWY_INLINE VecOf<T> Weight(VecOf<T> x) const {
    const Tag<T> d;
    auto w = hn::Set(d, coefficient[degree]);
    for (int i = degree - 1; i >= 0; --i)
      w = hn::MulAdd(w, x, hn::Set(d, coefficient[i]));
    return w;
  }
  HWY_INLINE void Both(VecOf<T> x, VecOf<T>& w, VecOf<T>& dw) const {
    const Tag<T> d;
    w = hn::Set(d, coefficient[degree]);
    dw = hn::Zero(d);
    for (int i = degree - 1; i >= 0; --i) {
      dw = i == degree - 1 ? w : hn::MulAdd(dw, x, w);
      w = hn::MulAdd(w, x, hn::Set(d, coefficient[i]));
    }
  }
};

template <typename T>
struct ReluFn {
  static constexpr bool kShift = false, kCheap = false;
  int power;
  HWY_INLINE VecOf<T> Weight(VecOf<T> x) const {
    VecOf<T> w, dw;
    Both(x, w, dw);
    return w;
  }
  HWY_INLINE void Both(VecOf<T> x, VecOf<T>& w, VecOf<T>& dw) const {
    const Tag<T> d;
    const auto off = hn::Le(x, hn::Zero(d));  // false for NaN, which stays
    const auto y = hn::IfThenZeroElse(off, x);
    auto lower = hn::Set(d, T{1});
    for (int i = 1; i < power; ++i) lower = hn::Mul(lower, y);
    w = hn::Mul(lower, y);
    dw = hn::IfThenZeroElse(off, hn::Mul(lower, hn::Set(d, T(power))));
  }
};

template <typename T>
struct ExpFn {
  static constexpr bool kShift = true, kCheap = false;
  HWY_INLINE VecOf<T> Weight(VecOf<T> x) const { return Exp2<T>(x); }
  HWY_INLINE void Both(VecOf<T> x, VecOf<T>& w, VecOf<T>& dw) const {
    w = Exp2<T>(x);
    dw = w;
  }
};

// With t = exp(-|x|) <= 1 neither the value nor the derivative, t / (1 + t)^2,
// can overflow or cancel.
template <typename T>
struct SigmoidFn {
  static constexpr bool kShift = true, kCheap = false;
  HWY_INLINE VecOf<T> Weight(VecOf<T> x) const {
    VecOf<T> w, dw;
    Both(x, w, dw);
    return w;
  }
  HWY_INLINE void Both(VecOf<T> x, VecOf<T>& w, VecOf<T>& dw) const {
    const Tag<T> d;
    const auto one = hn::Set(d, T{1});
    const auto t = Exp2<T>(hn::Neg(hn::Abs(x)));
    const auto inverse = hn::Div(one, hn::Add(one, t));
    const auto below = hn::Mul(t, inverse);
    w = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), below, inverse);
    dw = hn::Mul(below, inverse);
  }
};

// Calls f with the function of `params`.
template <typename T, typename F>
HWY_INLINE void WithWeightFn(const WeightParams<T>& params, F&& f) {
  switch (params.form) {
    case WeightForm::kExp:
      return f(ExpFn<T>());
    case WeightForm::kSigmoid:
      return f(SigmoidFn<T>());
    case WeightForm::kRelu:
      return f(ReluFn<T>{params.degree});
    case WeightForm::kPolynomial:
      return f(PolynomialFn<T>{params.coefficient, params.degree});
    case WeightForm::kMonomial:
      switch (params.degree) {
        case 1:
          return f(MonomialFn<T, 1>());
        case 2:
          return f(MonomialFn<T, 2>());
        case 3:
          return f(MonomialFn<T, 3>());
        default:
          return f(MonomialFn<T, 4>());
      }
  }
}

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
  Unroll<NV>([&](auto v) POLYATTN_LAMBDA { m[v] = hn::Load(d, top + v * L); });
  const auto scale = hn::Set(d, a.bias_scale);
  T* row = a.s;
  const std::int64_t rows = a.rows, ld = a.ld;
  for (std::int64_t j = 0; j < rows; ++j, row += ld) {
    Unroll<NV>([&](auto v) POLYATTN_LAMBDA {
      T* HWY_RESTRICT p = row + v * L;
      auto x = hn::LoadU(d, p);
      if (a.bias != nullptr) {
        const auto b = hn::Load(d, a.bias + j * kStrip<T> + v * L);
        x = hn::MulAdd(b, scale, x);
        hn::StoreU(x, d, p);
      }
      m[v] = hn::Max(m[v], x);
    });
  }
  Unroll<NV>([&](auto v) POLYATTN_LAMBDA { hn::Store(m[v], d, top + v * L); });
}

// What a pass computes beside the weights.
enum class PassSums {
  kNone,
  kWeight,  // the sum of |w|
  kAll,     // that, and what the statistics need
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
  const auto gone = hn::Set(d, -std::numeric_limits<T>::infinity());
  const auto one = hn::Set(d, T{1});
  const auto scale = hn::Set(d, a.bias_scale);
  VecOf<T> shift[NV];
  VecSums<T> sums[NV];
  Unroll<NV>([&](auto v) POLYATTN_LAMBDA {
    const auto zero = hn::Zero(d);
    shift[v] = Fn::kShift ? hn::Load(d, a.shift + v * L) : zero;
    sums[v] = {zero, zero, zero, zero, zero, zero};
  });
  T* row = a.s;
  const T* bias = a.bias;
  const std::int64_t rows = a.rows, ld = a.ld;
  for (std::int64_t j = 0; j < rows; ++j, row += ld) {
    Unroll<NV>([&](auto v) POLYATTN_LAMBDA {
      T* HWY_RESTRICT p = row + v * L;
      VecSums<T>& sum = sums[v];
      auto x = hn::LoadU(d, p);
      auto seen = hn::Eq(one, one);
      if constexpr (kBias && kExp) {
        seen = hn::Not(hn::Eq(x, gone));
      } else if constexpr (kBias) {
        const auto b = hn::Load(d, bias + j * kStrip<T> + v * L);
        seen = hn::Not(hn::Eq(b, gone));
        x = hn::MulAdd(b, scale, x);
      }
      const auto z = Fn::kShift ? hn::Sub(x, shift[v]) : x;
      VecOf<T> w, dw;
      if constexpr (kSums == PassSums::kAll) {
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
      if constexpr (kSums != PassSums::kNone)
        sum.weight = hn::Add(sum.weight, absw);
      if constexpr (kSums == PassSums::kAll) {
        auto absx = hn::Abs(x);
        if constexpr (kBias) {
          dw = hn::IfThenElseZero(seen, dw);
          absx = hn::IfThenElseZero(seen, absx);
        }
        const auto dw2 = hn::Mul(dw, dw);
        sum.top = hn::Max(sum.top, absx);
        sum.weight_sq = hn::MulAdd(w, w, sum.weight_sq);
        sum.derivative_sq = hn::Add(dw2, sum.derivative_sq);
        sum.derivative_sq_weight =
            hn::MulAdd(dw2, absw, sum.derivative_sq_weight);
      }
    });
  }
  if constexpr (!kBias && kSums == PassSums::kNone) return;
  Unroll<NV>([&](auto v) POLYATTN_LAMBDA {
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
  });
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
      if (!stats && !params.sum)
        return run.template operator()<PassSums::kNone>();
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
