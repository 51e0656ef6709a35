// The weight functions: a vector of scores to weights and their derivatives.
//
// Weights here are without the constant factor of a monomial, sigmoid or relu:
// it goes into the row scale. Scores of softmax and sigmoid come times log2(e),
// so that exp is Exp2.
#if defined(POLYATTN_KERNELS_DENSE_WEIGHT_FNS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_DENSE_WEIGHT_FNS_INL_H_
#undef POLYATTN_KERNELS_DENSE_WEIGHT_FNS_INL_H_
#else
#define POLYATTN_KERNELS_DENSE_WEIGHT_FNS_INL_H_
#endif

#include "core/kernels/math-inl.h"
#include "core/kernels/tile-inl.h"
#include "core/weights.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

// Each of these gives the weight w at score x (already less the row's shift
// where kShift says so), and its derivatives dw and ddw in natural units.
// kSigned: w may be negative. kCheap: worth instances of the passes that
// compute nothing beside it.
template <typename T, int P>
struct MonomialFn {
  static constexpr bool kShift = false, kSigned = true, kCheap = true;
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
  HWY_INLINE void All(VecOf<T> x, VecOf<T>& w, VecOf<T>& dw,
                      VecOf<T>& ddw) const {
    const Tag<T> d;
    Both(x, w, dw);
    if constexpr (P == 1) ddw = hn::Zero(d);
    if constexpr (P == 2) ddw = hn::Set(d, T{2});
    if constexpr (P > 2)
      ddw =
          hn::Mul(hn::Set(d, T{P * (P - 1)}), MonomialFn<T, P - 2>().Weight(x));
  }
};

template <typename T>
struct PolynomialFn {
  static constexpr bool kShift = false, kSigned = true, kCheap = false;
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
  // Horner's rule gives half of the second derivative.
  HWY_INLINE void All(VecOf<T> x, VecOf<T>& w, VecOf<T>& dw,
                      VecOf<T>& ddw) const {
    const Tag<T> d;
    w = hn::Set(d, coefficient[degree]);
    dw = hn::Zero(d);
    ddw = hn::Zero(d);
    for (int i = degree - 1; i >= 0; --i) {
      ddw = hn::MulAdd(ddw, x, dw);
      dw = hn::MulAdd(dw, x, w);
      w = hn::MulAdd(w, x, hn::Set(d, coefficient[i]));
    }
    ddw = hn::Add(ddw, ddw);
  }
};

template <typename T>
struct ReluFn {
  static constexpr bool kShift = false, kSigned = false, kCheap = false;
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
  HWY_INLINE void All(VecOf<T> x, VecOf<T>& w, VecOf<T>& dw,
                      VecOf<T>& ddw) const {
    const Tag<T> d;
    const auto off = hn::Le(x, hn::Zero(d));
    const auto y = hn::IfThenZeroElse(off, x);
    auto lowest = hn::Set(d, T(power * (power - 1)));
    for (int i = 2; i < power; ++i) lowest = hn::Mul(lowest, y);
    ddw = hn::IfThenZeroElse(off, lowest);
    Both(x, w, dw);
  }
};

template <typename T>
struct ExpFn {
  static constexpr bool kShift = true, kSigned = false, kCheap = false;
  HWY_INLINE VecOf<T> Weight(VecOf<T> x) const { return Exp2<T>(x); }
  HWY_INLINE void Both(VecOf<T> x, VecOf<T>& w, VecOf<T>& dw) const {
    w = Exp2<T>(x);
    dw = w;
  }
  HWY_INLINE void All(VecOf<T> x, VecOf<T>& w, VecOf<T>& dw,
                      VecOf<T>& ddw) const {
    Both(x, w, dw);
    ddw = w;
  }
};

// With t = exp(-|x|) <= 1 neither the value nor the derivative, t / (1 + t)^2,
// can overflow or cancel. The second derivative is that times
// sign(x) (t - 1) / (1 + t).
template <typename T>
struct SigmoidFn {
  static constexpr bool kShift = true, kSigned = false, kCheap = false;
  HWY_INLINE VecOf<T> Weight(VecOf<T> x) const {
    VecOf<T> w, dw;
    Both(x, w, dw);
    return w;
  }
  HWY_INLINE void Both(VecOf<T> x, VecOf<T>& w, VecOf<T>& dw) const {
    VecOf<T> ddw;
    All(x, w, dw, ddw);
  }
  HWY_INLINE void All(VecOf<T> x, VecOf<T>& w, VecOf<T>& dw,
                      VecOf<T>& ddw) const {
    const Tag<T> d;
    const auto one = hn::Set(d, T{1});
    const auto t = Exp2<T>(hn::Neg(hn::Abs(x)));
    const auto inverse = hn::Div(one, hn::Add(one, t));
    const auto below = hn::Mul(t, inverse);
    const auto negative = hn::Lt(x, hn::Zero(d));
    w = hn::IfThenElse(negative, below, inverse);
    dw = hn::Mul(below, inverse);
    const auto bend = hn::Mul(dw, hn::Mul(hn::Sub(one, t), inverse));
    ddw = hn::IfThenElse(negative, bend, hn::Neg(bend));
  }
};

// Calls f with the function of `params`, which are those of a polynomial.
template <typename T, typename F>
HWY_INLINE void WithPolynomialFn(const WeightParams<T>& params, F&& f) {
  if (params.form == WeightForm::kPolynomial)
    return f(PolynomialFn<T>{params.coefficient, params.degree});
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
    case WeightForm::kMonomial:
      return WithPolynomialFn<T>(params, f);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#endif
