// The register tile: the one inner loop that all matrix products of attention
// share. Per-target include guard: this file is compiled once per target.
//
//   C[r, 0 .. NV*L) (+)= sum_k A(r, k) * B[k, 0 .. NV*L)
//
// with r in [0, MR) and L lanes. A is read one element at a time and spread
// over the lanes, B a whole vector at a time, C stays in MR * NV registers. So
// A needs no packing at all: rows of k and v are used where the caller has
// them, and only the narrow operand (queries, weights) is laid out in panels.
//
// Cost of a k step: MR * NV multiply-adds against NV vector loads and MR
// broadcasts. With 16 registers 6 x 2 needs 8 loads for 12 multiply-adds, with
// 32 registers 12 x 2 needs 14 for 24; a core that loads two and multiplies
// two vectors a cycle is then bound by the multiply-adds. MR * NV >= 8 chains
// hide their latency of 4 cycles.
#if defined(POLYATTN_KERNELS_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_TILE_INL_H_
#undef POLYATTN_KERNELS_TILE_INL_H_
#else
#define POLYATTN_KERNELS_TILE_INL_H_
#endif

#include <cstdint>
#include <utility>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
using Tag = hn::ScalableTag<T>;
template <typename T>
using VecOf = hn::Vec<Tag<T>>;
template <typename T>
inline constexpr int kLanes = static_cast<int>(hn::MaxLanes(Tag<T>()));

// Vectors in a full strip, and queries in it.
inline constexpr int kStripVectors = 2;
template <typename T>
inline constexpr int kStrip = kStripVectors* kLanes<T>;

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_ARCH_ARM || \
    HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR
inline constexpr int kRegisters = 32;
#else
inline constexpr int kRegisters = 16;
#endif

// Rows of the tile: what the registers hold beside B and one broadcast.
template <int NV>
inline constexpr int kTileRows = NV == 1 ? 12 : (kRegisters == 32 ? 12 : 6);

// f(0), f(1), ..., f(N - 1) with compile-time indices.
template <int N, typename F>
HWY_INLINE void Unroll(F&& f) {
  [&]<int... I>(std::integer_sequence<int, I...>) HWY_ATTR {
    (f(std::integral_constant<int, I>()), ...);
  }
  (std::make_integer_sequence<int, N>());
}

// How A is walked: A(r, k) = a[r * lda + k] or a[k * lda + r].
enum class Walk { kAlongRows, kDownColumns };

template <typename T>
struct Operands {
  const T* HWY_RESTRICT a;
  std::int64_t lda;
  const T* HWY_RESTRICT b;
  std::int64_t ldb;
  T* HWY_RESTRICT c;
  std::int64_t ldc;
};

template <int MR, int NV, Walk W, typename T>
HWY_INLINE void Tile(std::int64_t depth, Operands<T> p, bool accumulate) {
  const Tag<T> d;
  constexpr int L = kLanes<T>;
  VecOf<T> acc[MR][NV];
  if (accumulate) {
    Unroll<MR>([&](auto r) HWY_ATTR {
      Unroll<NV>([&](auto v) HWY_ATTR {
        acc[r][v] = hn::LoadU(d, p.c + r * p.ldc + v * L);
      });
    });
  } else {
    Unroll<MR>([&](auto r) HWY_ATTR {
      Unroll<NV>([&](auto v) HWY_ATTR { acc[r][v] = hn::Zero(d); });
    });
  }
  const auto step = [&](const T* HWY_RESTRICT a,
                        const T* HWY_RESTRICT b) HWY_ATTR {
    VecOf<T> bv[NV];
    Unroll<NV>([&](auto v) HWY_ATTR { bv[v] = hn::LoadU(d, b + v * L); });
    Unroll<MR>([&](auto r) HWY_ATTR {
      const VecOf<T> av =
          hn::Set(d, W == Walk::kAlongRows ? a[r * p.lda] : a[r]);
      Unroll<NV>([&](auto v) HWY_ATTR {
        acc[r][v] = hn::MulAdd(av, bv[v], acc[r][v]);
      });
    });
  };
  const std::int64_t next = W == Walk::kAlongRows ? 1 : p.lda;
  std::int64_t k = 0;
  for (; k + 4 <= depth; k += 4) {
    Unroll<4>([&](auto u) HWY_ATTR { step(p.a + u * next, p.b + u * p.ldb); });
    p.a += 4 * next;
    p.b += 4 * p.ldb;
  }
  for (; k < depth; ++k, p.a += next, p.b += p.ldb) step(p.a, p.b);
  Unroll<MR>([&](auto r) HWY_ATTR {
    Unroll<NV>([&](auto v) HWY_ATTR {
      hn::StoreU(acc[r][v], d, p.c + r * p.ldc + v * L);
    });
  });
}

// The last `rows` < MR rows of a product.
template <int MR, int NV, Walk W, typename T>
HWY_INLINE void TileRest(std::int64_t rows, std::int64_t depth,
                         const Operands<T>& p, bool accumulate) {
  if constexpr (MR > 1) {
    if (rows == MR - 1) return Tile<MR - 1, NV, W>(depth, p, accumulate);
    TileRest<MR - 1, NV, W>(rows, depth, p, accumulate);
  }
}

// All rows of a product with one panel of B.
template <int NV, Walk W, typename T>
HWY_NOINLINE void Rows(std::int64_t rows, std::int64_t depth, Operands<T> p,
                       bool accumulate) {
  constexpr int MR = kTileRows<NV>;
  const std::int64_t next = MR * (W == Walk::kAlongRows ? p.lda : 1);
  for (; rows >= MR; rows -= MR) {
    Tile<MR, NV, W>(depth, p, accumulate);
    p.a += next;
    p.c += MR * p.ldc;
  }
  TileRest<MR, NV, W>(rows, depth, p, accumulate);
}

// All rows of a product with `width` columns: B in panels of kStrip columns,
// `panel` elements apart, all panels of a row tile before the next one, so
// that its part of A is read from the first-level cache. The last panel is
// computed a vector wide where that is enough; C must have room for it.
template <Walk W, typename T>
HWY_NOINLINE void RowsByPanels(std::int64_t rows, std::int64_t depth,
                               std::int64_t width, std::int64_t panel,
                               Operands<T> p, bool accumulate) {
  constexpr int MR = kTileRows<kStripVectors>;
  for (std::int64_t r = 0; r < rows; r += MR) {
    const std::int64_t count = rows - r < MR ? rows - r : MR;
    Operands<T> t = p;
    t.a = p.a + r * (W == Walk::kAlongRows ? p.lda : 1);
    t.c = p.c + r * p.ldc;
    for (std::int64_t w = 0; w < width; w += kStrip<T>) {
      if (width - w <= kLanes<T>) {
        TileRest<MR + 1, 1, W>(count, depth, t, accumulate);
      } else if (count == MR) {
        Tile<MR, kStripVectors, W>(depth, t, accumulate);
      } else {
        TileRest<MR, kStripVectors, W>(count, depth, t, accumulate);
      }
      t.b += panel;
      t.c += kStrip<T>;
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#endif
