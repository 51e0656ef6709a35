// gelu and its gradient in float, compiled for every target.
//
// With t = |x| the tail of the normal distribution is
//
//   Q(t) = exp(-t^2/2) R(t),   R(t) = erfc(t/sqrt(2)) exp(t^2/2) / 2,
//
// and R, which falls slowly from 1/2, is a polynomial in u = 1/(1 + t/4):
// minimax in relative error on [0, 14.5] by the Remez exchange, 1.7e-8 before
// and 5.8e-8 after its coefficients are rounded to float. Then Phi(x) is Q(-x)
// or 1 - Q(x), and the density that the gradient needs is the same exponential
// over sqrt(2 pi).
//
// The exponent is as large as 150, so that one rounding of it would cost a
// hundred roundings of the result: t^2 and its product with log2(e)/2 are
// carried in two parts, and the second is made good by a factor
// 1 - ln(2) * rest.
//
// Error: below 12 u of the value (u = 2^-24) for gelu where Q does not
// underflow (x > -12.9): exponential 5, R 5 (rounded coefficients, ten steps
// with decreasing terms, u itself), two products. The gradient has a zero near
// x = -0.75 and so a bound of 12 u (Q + |x| density). Cost: about 30
// operations and one division for each vector; 8 or 12 bytes an element.
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/gelu.cc"  // this file
#include "hwy/foreach_target.h"                    // IWYU pragma: keep
// Must come after foreach_target.h.
#include "core/kernels/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

using VecF = VecOf<float>;

struct NormalParts {
  VecF q;            // Q(|x|)
  VecF exponential;  // exp(-x^2/2)
};

// exp(-t^2/2) for 0 <= t <= 16.
HWY_INLINE VecF HalfSquareExp(VecF t) {
  const Tag<float> d;
  constexpr double kHalfLog2E = 0.72134752044448170367;
  const auto high = hn::Set(d, static_cast<float>(kHalfLog2E));
  const auto low = hn::Set(
      d, static_cast<float>(kHalfLog2E - static_cast<float>(kHalfLog2E)));
  const auto square = hn::Mul(t, t);
  const auto square_rest = hn::MulSub(t, t, square);
  const auto exponent = hn::Mul(square, high);
  auto rest = hn::MulSub(square, high, exponent);
  rest = hn::MulAdd(square, low, rest);
  rest = hn::MulAdd(square_rest, high, rest);
  const auto factor =
      hn::NegMulAdd(rest, hn::Set(d, 0.69314718f), hn::Set(d, 1.0f));
  return hn::Mul(Exp2<float>(hn::Neg(exponent)), factor);
}

HWY_INLINE NormalParts Normal(VecF x) {
  const Tag<float> d;
  constexpr float kTail[] = {
      -1.9854794728e-5f, 0.10019535085f, 0.095098899221f, 0.12026656844f,
      -0.016603967877f,  0.29739715471f, -0.3248715827f,  0.38849055917f,
      -0.19337880575f,   0.03342567052f};
  const auto one = hn::Set(d, 1.0f), limit = hn::Set(d, 16.0f);
  auto t = hn::Abs(x);
  t = hn::IfThenElse(hn::Gt(t, limit), limit, t);  // a NaN stays
  const auto u = hn::Div(one, hn::MulAdd(t, hn::Set(d, 0.25f), one));
  auto r = hn::Set(d, kTail[9]);
  POLYATTN_UNROLL
  for (int i = 8; i >= 0; --i) r = hn::MulAdd(r, u, hn::Set(d, kTail[i]));
  const auto exponential = HalfSquareExp(t);
  return {hn::Mul(r, exponential), exponential};
}

// Phi(x), given Q(|x|).
HWY_INLINE VecF Distribution(VecF x, VecF q) {
  const Tag<float> d;
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), q,
                        hn::Sub(hn::Set(d, 1.0f), q));
}

HWY_INLINE VecF Gelu(VecF x) {
  return hn::Mul(x, Distribution(x, Normal(x).q));
}

HWY_INLINE VecF GeluGradient(VecF x, VecF dy) {
  const Tag<float> d;
  const NormalParts parts = Normal(x);
  // Far out the density is an exact zero, and stays one for an infinite x.
  const auto zero = hn::Zero(d);
  const auto density = hn::Mul(parts.exponential, hn::Set(d, 0.39894228040f));
  const auto slope =
      hn::IfThenElse(hn::Eq(density, zero), zero, hn::Mul(x, density));
  return hn::Mul(dy, hn::Add(Distribution(x, parts.q), slope));
}

// out[i] = f(in[i]...) for arrays of any length; the last few elements go
// through a padded vector.
template <typename F, typename... In>
HWY_INLINE void Elementwise(std::size_t count, float* out, const F& f,
                            const In*... in) {
  const Tag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(f(hn::LoadU(d, in + i)...), d, out + i);
  }
  if (i == count) return;
  const auto padded = [&](const float* from) POLYATTN_LAMBDA {
    HWY_ALIGN float values[hn::MaxLanes(Tag<float>())] = {};
    for (std::size_t j = 0; i + j < count; ++j) values[j] = from[i + j];
    return hn::Load(d, values);
  };
  HWY_ALIGN float values[hn::MaxLanes(Tag<float>())];
  hn::Store(f(padded(in)...), d, values);
  for (std::size_t j = 0; i + j < count; ++j) out[i + j] = values[j];
}

void GeluF32(const float* x, float* y, std::size_t count) {
  Elementwise(
      count, y, [](VecF v) POLYATTN_LAMBDA { return Gelu(v); }, x);
}

void GeluGradientF32(const float* x, const float* dy, float* dx,
                     std::size_t count) {
  Elementwise(
      count, dx,
      [](VecF v, VecF g) POLYATTN_LAMBDA { return GeluGradient(v, g); }, x, dy);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "core/dispatch.h"
#include "core/kernels/gelu.h"

namespace polyattn {

HWY_EXPORT(GeluF32);
HWY_EXPORT(GeluGradientF32);

void gelu_f32(const float* x, float* y, std::size_t count) {
  POLYATTN_DISPATCH(GeluF32)(x, y, count);
}

void gelu_gradient_f32(const float* x, const float* dy, float* dx,
                       std::size_t count) {
  POLYATTN_DISPATCH(GeluGradientF32)(x, dy, dx, count);
}

}  // namespace polyattn
#endif  // HWY_ONCE
