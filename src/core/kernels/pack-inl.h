// Moving rows between the caller's memory (any storage type) and the layouts
// that the tiles read: conversion, and transposition in 128-bit blocks.
#if defined(POLYATTN_KERNELS_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_PACK_INL_H_
#undef POLYATTN_KERNELS_PACK_INL_H_
#else
#define POLYATTN_KERNELS_PACK_INL_H_
#endif

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/kernels/tile-inl.h"
#include "hwy/highway.h"
#include "polyattn/tensor.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

template <typename T>
inline constexpr DType kDTypeOf =
    std::is_same_v<T, float> ? DType::kF32 : DType::kF64;

// Where the machine itself converts f16, with NaN, inf and the right rounding;
// elsewhere Highway has a simpler conversion, which is not used.
// (A better x86 target is a lower bit.)
inline constexpr bool kHasF16Convert = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2;

// `count` elements to T, times scale.
template <typename T>
HWY_INLINE void LoadRow(const void* src, DType dtype, std::int64_t index,
                        std::int64_t count, T scale, T* HWY_RESTRICT dst) {
  const Tag<T> d;
  constexpr int L = kLanes<T>;
  const auto vs = hn::Set(d, scale);
  std::int64_t i = 0;
  if (dtype == kDTypeOf<T>) {
    const T* s = static_cast<const T*>(src) + index;
    for (; i + L <= count; i += L)
      hn::StoreU(hn::Mul(hn::LoadU(d, s + i), vs), d, dst + i);
    for (; i < count; ++i) dst[i] = s[i] * scale;
    return;
  }
  if constexpr (std::is_same_v<T, float>) {
    const hn::Rebind<std::uint16_t, Tag<T>> d16;
    const hn::Rebind<std::uint32_t, Tag<T>> d32;
    const auto* s = static_cast<const std::uint16_t*>(src) + index;
    if (dtype == DType::kBF16) {
      for (; i + L <= count; i += L) {
        const auto wide = hn::PromoteTo(d32, hn::LoadU(d16, s + i));
        const auto x = hn::BitCast(d, hn::ShiftLeft<16>(wide));
        hn::StoreU(hn::Mul(x, vs), d, dst + i);
      }
    } else if (kHasF16Convert && dtype == DType::kF16) {
      const hn::Rebind<hwy::float16_t, Tag<T>> dh;
      for (; i + L <= count; i += L) {
        const auto x = hn::PromoteTo(d, hn::BitCast(dh, hn::LoadU(d16, s + i)));
        hn::StoreU(hn::Mul(x, vs), d, dst + i);
      }
    }
  }
  for (; i < count; ++i)
    dst[i] = static_cast<T>(load_element(src, dtype, index + i)) * scale;
}

// A vector of f32 to bf16 or f16, rounded to nearest even; returns how many of
// the values written are finite.
HWY_INLINE std::int64_t Store16(VecOf<float> x, DType dtype,
                                std::uint16_t* out) {
  const Tag<float> d;
  const hn::RebindToSigned<Tag<float>> di;
  const hn::Rebind<std::uint16_t, Tag<float>> d16;
  const hn::Rebind<hwy::float16_t, Tag<float>> dh;
  if (dtype == DType::kF16) {
    const auto half = hn::DemoteTo(dh, x);
    hn::StoreU(hn::BitCast(d16, half), d16, out);
    return hn::CountTrue(d, hn::IsFinite(hn::PromoteTo(d, half)));
  }
  const hn::RebindToUnsigned<Tag<float>> du;
  const auto bits = hn::BitCast(du, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
  const auto up = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFFu)));
  const auto quiet = hn::Or(bits, hn::Set(du, 0x00400000u));
  const auto rounded =
      hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(x)), quiet, up);
  const auto high = hn::ShiftRight<16>(rounded);
  hn::StoreU(hn::DemoteTo(d16, hn::BitCast(di, high)), d16, out);
  return hn::CountTrue(d,
                       hn::IsFinite(hn::BitCast(d, hn::ShiftLeft<16>(high))));
}

// scale * src to storage; returns how many of the values written are inf or
// NaN.
template <typename T>
HWY_INLINE std::int64_t StoreRow(const T* HWY_RESTRICT src, std::int64_t count,
                                 T scale, void* dst, DType dtype,
                                 std::int64_t index) {
  const Tag<T> d;
  constexpr int L = kLanes<T>;
  const auto vs = hn::Set(d, scale);
  std::int64_t i = 0, finite = 0;
  if (dtype == kDTypeOf<T>) {
    T* out = static_cast<T*>(dst) + index;
    for (; i + L <= count; i += L) {
      const auto x = hn::Mul(hn::LoadU(d, src + i), vs);
      finite += static_cast<std::int64_t>(hn::CountTrue(d, hn::IsFinite(x)));
      hn::StoreU(x, d, out + i);
    }
  }
  if constexpr (std::is_same_v<T, float>) {
    if (dtype == DType::kBF16 || (kHasF16Convert && dtype == DType::kF16)) {
      auto* out = static_cast<std::uint16_t*>(dst) + index;
      for (; i + L <= count; i += L)
        finite += Store16(hn::Mul(hn::LoadU(d, src + i), vs), dtype, out + i);
    }
  }
  for (; i < count; ++i) {
    const T x = src[i] * scale;
    store_element(dst, dtype, index + i, static_cast<double>(x));
    finite += std::isfinite(load_element(dst, dtype, index + i)) ? 1 : 0;
  }
  return count - finite;
}

#if HWY_TARGET == HWY_SCALAR

// One lane: the L rows are a single one.
template <typename T>
HWY_INLINE void TransposeBlock(const T* src, std::int64_t /*ld*/,
                               VecOf<T> (&out)[16 / sizeof(T)]) {
  const Tag<T> d;
  POLYATTN_UNROLL
  for (int c = 0; c < static_cast<int>(16 / sizeof(T)); ++c)
    out[c] = hn::LoadU(d, src + c);
}

#else

// A vector whose 128-bit block b is read from p + b * (lanes of a block) * ld.
template <typename D>
HWY_INLINE hn::Vec<D> LoadBlocks(D d, const hn::TFromD<D>* p, std::int64_t ld) {
  constexpr int kLanesOfD = static_cast<int>(hn::MaxLanes(d));
  if constexpr (kLanesOfD * sizeof(hn::TFromD<D>) <= 16) {
    return hn::LoadU(d, p);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, LoadBlocks(half, p + kLanesOfD / 2 * ld, ld),
                       LoadBlocks(half, p, ld));
  }
}

// L rows x (lanes of a block) columns: out[c] = column c over the L rows.
template <typename T>
HWY_INLINE void TransposeBlock(const T* src, std::int64_t ld,
                               VecOf<T> (&out)[16 / sizeof(T)]) {
  const Tag<T> d;
  const auto a0 = LoadBlocks(d, src, ld);
  const auto a1 = LoadBlocks(d, src + ld, ld);
  if constexpr (sizeof(T) == 8) {
    out[0] = hn::InterleaveLower(d, a0, a1);
    out[1] = hn::InterleaveUpper(d, a0, a1);
  } else {
    const auto a2 = LoadBlocks(d, src + 2 * ld, ld);
    const auto a3 = LoadBlocks(d, src + 3 * ld, ld);
    const auto l02 = hn::InterleaveLower(d, a0, a2);
    const auto l13 = hn::InterleaveLower(d, a1, a3);
    const auto u02 = hn::InterleaveUpper(d, a0, a2);
    const auto u13 = hn::InterleaveUpper(d, a1, a3);
    out[0] = hn::InterleaveLower(d, l02, l13);
    out[1] = hn::InterleaveUpper(d, l02, l13);
    out[2] = hn::InterleaveLower(d, u02, u13);
    out[3] = hn::InterleaveUpper(d, u02, u13);
  }
}

#endif  // HWY_TARGET == HWY_SCALAR

// Which side of a transposition is far away, in the caller's memory: it is
// walked row by row, so that the machine sees what comes next.
enum class Far { kSource, kTarget };

// dst[c * ldd + r] = src[r * lds + c] * scale[c * scale_step].
template <Far kFar, typename T>
HWY_NOINLINE void Transpose(const T* src, std::int64_t lds, std::int64_t rows,
                            std::int64_t cols, const T* scale,
                            std::int64_t scale_step, T* dst, std::int64_t ldd) {
  const Tag<T> d;
  constexpr int L = kLanes<T>, kCols = 16 / sizeof(T);
  const std::int64_t whole_rows = rows / L * L;
  const std::int64_t whole_cols = cols / kCols * kCols;
  const auto block = [&](std::int64_t r, std::int64_t c) POLYATTN_LAMBDA {
    VecOf<T> out[kCols];
    TransposeBlock(src + r * lds + c, lds, out);
    POLYATTN_UNROLL
    for (int i = 0; i < kCols; ++i) {
      const auto s = hn::Set(d, scale[(c + i) * scale_step]);
      hn::StoreU(hn::Mul(out[i], s), d, dst + (c + i) * ldd + r);
    }
  };
  if constexpr (kFar == Far::kSource) {
    for (std::int64_t r = 0; r < whole_rows; r += L)
      for (std::int64_t c = 0; c < whole_cols; c += kCols) block(r, c);
  } else {
    for (std::int64_t c = 0; c < whole_cols; c += kCols)
      for (std::int64_t r = 0; r < whole_rows; r += L) block(r, c);
  }
  const auto one_by_one = [&](std::int64_t r, std::int64_t from) {
    for (std::int64_t c = from; c < cols; ++c)
      dst[c * ldd + r] = src[r * lds + c] * scale[c * scale_step];
  };
  for (std::int64_t r = 0; r < whole_rows; ++r) one_by_one(r, whole_cols);
  for (std::int64_t r = whole_rows; r < rows; ++r) one_by_one(r, 0);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#endif
