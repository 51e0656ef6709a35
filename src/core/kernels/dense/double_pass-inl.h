// The element-wise part of the double backward, in place: scores s, what they
// change by (t), p = d_o.v and u = d_o.uv in; weights w, what those change by,
// the score gradients of the first derivative and those of this one out. The
// row scale c is in p and u; docs/kernels.md derives it.
#if defined(POLYATTN_KERNELS_DENSE_DOUBLE_PASS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_DENSE_DOUBLE_PASS_INL_H_
#undef POLYATTN_KERNELS_DENSE_DOUBLE_PASS_INL_H_
#else
#define POLYATTN_KERNELS_DENSE_DOUBLE_PASS_INL_H_
#endif

#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/kernels/dense/grads-inl.h"
#include "core/kernels/dense/weight_fns-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

// Sums over keys, a lane for each query of a strip.
template <typename T>
struct DoubleLanes {
  alignas(64) T tangent[kMaxStrip];
  alignas(64) T pull[kMaxStrip];
  alignas(64) T mixed[kMaxStrip];
};

// Part of a strip: `rows` keys.
template <typename T>
struct DoubleArgs {
  T* s;  // [rows, ld]: scores, then w
  T* t;  // [rows, ld]: what scores change by, then what w does
  T* p;  // [rows, ld]: c d_o.v, then the gradients of the first derivative
  T* u;  // [rows, ld]: c d_o.uv, then those of this one
  std::int64_t ld;
  std::int64_t rows;
  const T* bias;  // [rows, kStrip], or null; -inf removes the key
  T score_factor;
  const T* shift;         // [kStrip]
  const T* tangent;       // [kStrip], these three for /sum alone
  const T* delta;         // [kStrip]
  const T* rho;           // [kStrip]
  DoubleLanes<T>* lanes;  // added to by SumPass
};

// What both passes need of a vector of queries and a key. It has no
// constructor, as VecSums of weights-inl.h has none.
template <typename T>
struct DoubleValues {
  VecOf<T> w, dw, ddw, t, p, u;
  hn::Mask<Tag<T>> seen;
};

// Those of vector v and key j.
template <typename Fn, typename T>
HWY_INLINE void LoadValues(const Fn& fn, const DoubleArgs<T>& a, std::int64_t j,
                           int v, DoubleValues<T>& to) {
  const Tag<T> d;
  const std::int64_t at = j * a.ld + v * kLanes<T>;
  auto x = hn::LoadU(d, a.s + at);
  to.t = hn::Mul(hn::LoadU(d, a.t + at), hn::Set(d, 1 / a.score_factor));
  to.p = hn::LoadU(d, a.p + at);
  to.u = hn::LoadU(d, a.u + at);
  to.seen = hn::Eq(hn::Zero(d), hn::Zero(d));
  if (a.bias != nullptr) {
    const auto b = hn::Load(d, a.bias + j * kStrip<T> + v * kLanes<T>);
    to.seen = hn::Ne(b, hn::Set(d, -std::numeric_limits<T>::infinity()));
    x = hn::MulAdd(b, hn::Set(d, a.score_factor), x);
  }
  if constexpr (Fn::kShift)
    x = hn::Sub(x, hn::Load(d, a.shift + v * kLanes<T>));
  fn.All(x, to.w, to.dw, to.ddw);
}

// y times the sign of w, which is 1 but where kSum says otherwise.
template <SumKind kSum, typename T>
HWY_INLINE VecOf<T> Signed(VecOf<T> w, VecOf<T> y) {
  if constexpr (kSum != SumKind::kSigned) return y;
  const auto zero = hn::Zero(Tag<T>());
  const auto with_sign = hn::IfThenElse(hn::Lt(w, zero), hn::Neg(y), y);
  return hn::IfThenZeroElse(hn::Eq(w, zero), with_sign);
}

// The sums of a row over its keys.
template <SumKind kSum, typename Fn, typename T>
HWY_NOINLINE void SumPass(const Fn& fn, const DoubleArgs<T>& a) {
  const Tag<T> d;
  for (int v = 0; v < kStripVectors; ++v) {
    DoubleLanes<T>& to = *a.lanes;
    auto tangent = hn::Load(d, to.tangent + v * kLanes<T>);
    auto pull = hn::Load(d, to.pull + v * kLanes<T>);
    auto mixed = hn::Load(d, to.mixed + v * kLanes<T>);
    for (std::int64_t j = 0; j < a.rows; ++j) {
      DoubleValues<T> x = {};
      LoadValues(fn, a, j, v, x);
      const auto moved = hn::IfThenElseZero(x.seen, hn::Mul(x.dw, x.t));
      const auto w = hn::IfThenElseZero(x.seen, x.w);
      tangent = hn::Add(tangent, Signed<kSum, T>(x.w, moved));
      pull = hn::MulAdd(w, x.p, pull);
      mixed = hn::MulAdd(moved, x.p, hn::MulAdd(w, x.u, mixed));
    }
    hn::Store(tangent, d, to.tangent + v * kLanes<T>);
    hn::Store(pull, d, to.pull + v * kLanes<T>);
    hn::Store(mixed, d, to.mixed + v * kLanes<T>);
  }
}

template <SumKind kSum, typename Fn, typename T>
HWY_NOINLINE void DoublePass(const Fn& fn, const DoubleArgs<T>& a) {
  const Tag<T> d;
  for (int v = 0; v < kStripVectors; ++v) {
    VecOf<T> tangent = hn::Zero(d), delta = tangent, rho = tangent;
    if constexpr (kSum != SumKind::kNone) {
      tangent = hn::Load(d, a.tangent + v * kLanes<T>);
      delta = hn::Load(d, a.delta + v * kLanes<T>);
      rho = hn::Load(d, a.rho + v * kLanes<T>);
    }
    for (std::int64_t j = 0; j < a.rows; ++j) {
      DoubleValues<T> x = {};
      LoadValues(fn, a, j, v, x);
      auto change = hn::Mul(x.dw, x.t);
      auto h = x.p, rest = x.u;
      if constexpr (kSum != SumKind::kNone) {
        change = hn::NegMulAdd(x.w, tangent, change);
        h = hn::Sub(h, Signed<kSum, T>(x.w, delta));
        rest = hn::NegMulAdd(tangent, x.p, rest);
        rest = hn::Sub(rest, Signed<kSum, T>(x.w, rho));
      }
      const auto bend = hn::Mul(hn::Mul(x.ddw, x.t), h);
      const std::int64_t at = j * a.ld + v * kLanes<T>;
      const auto store = [&](VecOf<T> y, T* to) POLYATTN_LAMBDA {
        hn::StoreU(hn::IfThenElseZero(x.seen, y), d, to + at);
      };
      store(x.w, a.s);
      store(change, a.t);
      store(hn::Mul(x.dw, h), a.p);
      store(hn::MulAdd(x.dw, rest, bend), a.u);
    }
  }
}

// Calls f<sum kind>(function) as the activation has it.
template <typename T, typename F>
HWY_INLINE void WithSumKind(const WeightParams<T>& params, F&& f) {
  WithWeightFn<T>(params, [&](auto fn) POLYATTN_LAMBDA {
    using Fn = decltype(fn);
    constexpr SumKind kSum =
        Fn::kSigned ? SumKind::kSigned : SumKind::kPositive;
    if constexpr (std::is_same_v<Fn, ExpFn<T>>) {
      f.template operator()<kSum>(fn);
    } else if (params.sum) {
      f.template operator()<kSum>(fn);
    } else {
      f.template operator()<SumKind::kNone>(fn);
    }
  });
}

template <typename T>
HWY_INLINE void RunDoublePass(const WeightParams<T>& params,
                              const DoubleArgs<T>& a) {
  WithSumKind<T>(params, [&]<SumKind kSum>(const auto& fn)
                             POLYATTN_LAMBDA { DoublePass<kSum>(fn, a); });
}

// For /sum alone.
template <typename T>
HWY_INLINE void RunSumPass(const WeightParams<T>& params,
                           const DoubleArgs<T>& a) {
  WithSumKind<T>(params, [&]<SumKind kSum>(const auto& fn) POLYATTN_LAMBDA {
    if constexpr (kSum != SumKind::kNone) SumPass<kSum>(fn, a);
  });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#endif
