// 2^x for vectors, the one transcendental function that attention needs.
#if defined(POLYATTN_KERNELS_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_MATH_INL_H_
#undef POLYATTN_KERNELS_MATH_INL_H_
#else
#define POLYATTN_KERNELS_MATH_INL_H_
#endif

#include <array>
#include <cstdint>

#include "core/kernels/tile-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

// Coefficients of a polynomial for 2^r on [-1/2, 1/2], and the numbers that
// move an integer between the exponent and the mantissa.
template <typename T>
struct Exp2Traits;

// Minimax in relative error (1.9e-9), found by the Remez exchange.
template <>
struct Exp2Traits<float> {
  using Int = std::int32_t;
  static constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23
  static constexpr float kLowest = -127.0f;
  static constexpr int kMantissaBits = 23;
  static constexpr Int kBias = 127;
  static constexpr std::array<float, 7> kPoly = {
      1.0f,           0.69314720574f, 0.24022646891f,  0.05550328777f,
      0.00961848892f, 0.00133999313f, 0.000153458205f,
  };
};

// Taylor, ln(2)^i / i!: the first term left out is 4e-18 of the value.
template <>
struct Exp2Traits<double> {
  using Int = std::int64_t;
  static constexpr double kMagic = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr double kLowest = -1023.0;
  static constexpr int kMantissaBits = 52;
  static constexpr Int kBias = 1023;
  static constexpr std::array<double, 14> kPoly = [] {
    std::array<double, 14> c{};
    double term = 1;
    for (int i = 0; i < 14; ++i) {
      c[i] = term;
      term *= 0.693147180559945309417 / (i + 1);
    }
    return c;
  }();
};

// 2^x for x <= 0 (up to the largest exponent). x = n + r with n an integer and
// |r| <= 1/2; n is read from the low bits of x + kMagic, and n = kLowest makes
// the power an exact zero, which is what -inf and everything below give. NaN
// gives NaN. Error: below 4 u, as tests/core/error_bound.cc derives it.
template <typename T>
HWY_INLINE VecOf<T> Exp2(VecOf<T> x) {
  using Traits = Exp2Traits<T>;
  const Tag<T> d;
  const hn::RebindToSigned<Tag<T>> di;
  const auto lowest = hn::Set(d, Traits::kLowest);
  x = hn::IfThenElse(hn::Lt(x, lowest), lowest, x);
  const auto magic = hn::Set(d, Traits::kMagic);
  const auto shifted = hn::Add(x, magic);
  const auto r = hn::Sub(x, hn::Sub(shifted, magic));
  constexpr int kDegree = static_cast<int>(Traits::kPoly.size()) - 1;
  auto p = hn::Set(d, Traits::kPoly[kDegree]);
  POLYATTN_UNROLL
  for (int i = kDegree - 1; i >= 0; --i)
    p = hn::MulAdd(p, r, hn::Set(d, Traits::kPoly[i]));
  const auto n = hn::Add(hn::BitCast(di, shifted), hn::Set(di, Traits::kBias));
  const auto power = hn::BitCast(d, hn::ShiftLeft<Traits::kMantissaBits>(n));
  return hn::Mul(p, power);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#endif
