// The element-wise part of the backward pass: scores and the gradients of the
// weights in, weights and the gradients of the scores out, in place.
#if defined(POLYATTN_KERNELS_DENSE_GRADS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_DENSE_GRADS_INL_H_
#undef POLYATTN_KERNELS_DENSE_GRADS_INL_H_
#else
#define POLYATTN_KERNELS_DENSE_GRADS_INL_H_
#endif

#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/kernels/dense/weight_fns-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

// Part of a strip: `rows` keys. The gradients come times the row scale c.
template <typename T>
struct GradArgs {
  T* s;  // [rows, ld]: scores in, weights out
  T* g;  // [rows, ld]: c dL/dA in, dL/ds out
  std::int64_t ld;
  std::int64_t rows;
  const T* bias;  // [rows, kStrip], or null; -inf removes the key
  T bias_scale;
  const T* shift;  // [kStrip]
  const T* delta;  // [kStrip]: c sum_j A_j dL/dA_j, used for /sum alone
};

enum class SumKind { kNone, kPositive, kSigned };

// ds = w' (g - sign(w) delta), where delta is the pull of the common divisor.
template <bool kBias, SumKind kSum, typename Fn, typename T>
HWY_NOINLINE void GradPass(const Fn& fn, const GradArgs<T>& a) {
  const Tag<T> d;
  constexpr int L = kLanes<T>, NV = kStripVectors;
  const auto masked = hn::Set(d, -std::numeric_limits<T>::infinity());
  const auto scale = hn::Set(d, a.bias_scale);
  VecOf<T> shift[NV], delta[NV];
  POLYATTN_UNROLL
  for (int v = 0; v < NV; ++v) {
    shift[v] = hn::Load(d, a.shift + v * L);
    delta[v] = hn::Load(d, a.delta + v * L);
  }
  T* s_row = a.s;
  T* g_row = a.g;
  const T* bias = a.bias;
  const std::int64_t rows = a.rows, ld = a.ld;
  for (std::int64_t j = 0; j < rows; ++j, s_row += ld, g_row += ld) {
    POLYATTN_UNROLL
    for (int v = 0; v < NV; ++v) {
      T* HWY_RESTRICT s = s_row + v * L;
      T* HWY_RESTRICT g = g_row + v * L;
      auto x = hn::LoadU(d, s);
      auto grad = hn::LoadU(d, g);
      auto seen = hn::Eq(scale, scale);
      if constexpr (kBias) {
        const auto b = hn::Load(d, bias + j * kStrip<T> + v * L);
        seen = hn::Not(hn::Eq(b, masked));
        x = hn::MulAdd(b, scale, x);
      }
      if constexpr (Fn::kShift) x = hn::Sub(x, shift[v]);
      VecOf<T> w, dw;
      fn.Both(x, w, dw);
      if constexpr (kSum == SumKind::kPositive) {
        grad = hn::Sub(grad, delta[v]);
      } else if constexpr (kSum == SumKind::kSigned) {
        const auto none = hn::Eq(w, hn::Zero(d));
        const auto minus = hn::Lt(w, hn::Zero(d));
        const auto pull = hn::IfThenElse(minus, hn::Neg(delta[v]), delta[v]);
        grad = hn::Sub(grad, hn::IfThenZeroElse(none, pull));
      }
      grad = hn::Mul(grad, dw);
      if constexpr (kBias) {
        w = hn::IfThenElseZero(seen, w);
        grad = hn::IfThenElseZero(seen, grad);
      }
      hn::StoreU(w, d, s);
      hn::StoreU(grad, d, g);
    }
  }
}

// Chooses the instance of GradPass.
template <typename T>
HWY_INLINE void RunGradPass(const WeightParams<T>& params,
                            const GradArgs<T>& a) {
  WithWeightFn<T>(params, [&](auto fn) POLYATTN_LAMBDA {
    using Fn = decltype(fn);
    const auto run = [&]<SumKind kSum>() POLYATTN_LAMBDA {
      a.bias != nullptr ? GradPass<true, kSum>(fn, a)
                        : GradPass<false, kSum>(fn, a);
    };
    constexpr SumKind kSum =
        Fn::kSigned ? SumKind::kSigned : SumKind::kPositive;
    if constexpr (std::is_same_v<Fn, ExpFn<T>>) {
      run.template operator()<kSum>();
    } else if (params.sum) {
      run.template operator()<kSum>();
    } else {
      run.template operator()<SumKind::kNone>();
    }
  });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#endif
