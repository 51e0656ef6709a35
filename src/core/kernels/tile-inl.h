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

#include "core/kernels/prefetch.h"
#include "core/kernels/registers.h"
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

// Rows of the tile: what the registers hold beside B and one broadcast.
template <int NV>
inline constexpr int kTileRows = POLYATTN_REGISTERS >= 32 ? 12
                                 : NV == 1                ? 8
                                                          : 6;

// After the parameters of a lambda in a kernel: compiled for the target, and
// never a call, so that what it captures stays in registers.
#ifndef POLYATTN_LAMBDA
#define POLYATTN_LAMBDA HWY_ATTR __attribute__((always_inline))
#endif

// Before a loop over the vectors or rows of a tile: written out, so that arrays
// of vectors become registers. The compiler does this in a fraction of the time
// that it needs for Unroll().
#ifndef POLYATTN_UNROLL
#if HWY_COMPILER_CLANG
#define POLYATTN_UNROLL _Pragma("unroll")
#else
#define POLYATTN_UNROLL _Pragma("GCC unroll 16")
#endif
#endif

// f(0), f(1), ..., f(N - 1) with compile-time indices.
template <int N, typename F>
HWY_INLINE void Unroll(F&& f) {
  [&]<int... I>(std::integer_sequence<int, I...>) POLYATTN_LAMBDA {
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
  int power = 1;  // 1 to 4: what A along rows gives is raised to it
  // Add to C what was summed apart from it: the rounding of a long sum over
  // many calls then grows with their number, not with that of its terms.
  bool apart = false;
};

// One k step. Rows have compile-time indices: otherwise pointers to them are
// kept, and there are too many of those for the registers.
template <int MR, int NV, Walk W, typename T>
HWY_INLINE void TileStep(const T* HWY_RESTRICT a, std::int64_t lda,
                         const T* HWY_RESTRICT b, VecOf<T> (&acc)[MR][NV]) {
  const Tag<T> d;
  VecOf<T> bv[NV];
  POLYATTN_UNROLL
  for (int v = 0; v < NV; ++v) bv[v] = hn::LoadU(d, b + v * kLanes<T>);
  Unroll<MR>([&](auto r) POLYATTN_LAMBDA {
    const auto av = hn::Set(d, W == Walk::kAlongRows ? a[r * lda] : a[r]);
    POLYATTN_UNROLL
    for (int v = 0; v < NV; ++v) acc[r][v] = hn::MulAdd(av, bv[v], acc[r][v]);
  });
}

// f(vector, its place in C) for all of a tile.
template <int MR, int NV, typename T, typename F>
HWY_INLINE void ForTile(const Operands<T>& p, VecOf<T> (&acc)[MR][NV], F&& f) {
  POLYATTN_UNROLL
  for (int r = 0; r < MR; ++r) {
    POLYATTN_UNROLL
    for (int v = 0; v < NV; ++v) f(acc[r][v], p.c + r * p.ldc + v * kLanes<T>);
  }
}

// Every element to the power 2, 3 or 4.
template <int MR, int NV, typename T>
HWY_INLINE void Raise(const Operands<T>& p, VecOf<T> (&acc)[MR][NV]) {
  const auto square = [](VecOf<T>& x, T*)
                          POLYATTN_LAMBDA { x = hn::Mul(x, x); };
  if (p.power == 3) {
    ForTile<MR, NV>(p, acc, [](VecOf<T>& x, T*) POLYATTN_LAMBDA {
      x = hn::Mul(x, hn::Mul(x, x));
    });
    return;
  }
  ForTile<MR, NV>(p, acc, square);
  if (p.power == 4) ForTile<MR, NV>(p, acc, square);
}

template <int MR, int NV, Walk W, typename T>
HWY_NOINLINE void Tile(std::int64_t depth, const Operands<T>& p,
                       bool accumulate) {
  const Tag<T> d;
  constexpr int kSteps = MR >= 4 ? 2 : 1;
  VecOf<T> acc[MR][NV];
  ForTile<MR, NV>(p, acc, [&](VecOf<T>& x, const T* c) POLYATTN_LAMBDA {
    x = accumulate ? hn::LoadU(d, c) : hn::Zero(d);
  });
  const T* HWY_RESTRICT a = p.a;
  const T* HWY_RESTRICT b = p.b;
  const std::int64_t lda = p.lda, ldb = p.ldb;
  const std::int64_t next = W == Walk::kAlongRows ? 1 : lda;
  std::int64_t k = depth;
  for (; k >= kSteps; k -= kSteps, a += kSteps * next, b += kSteps * ldb) {
    POLYATTN_UNROLL
    for (int u = 0; u < kSteps; ++u)
      TileStep<MR, NV, W>(a + u * next, lda, b + u * ldb, acc);
  }
  for (; k > 0; --k, a += next, b += ldb) TileStep<MR, NV, W>(a, lda, b, acc);
  if constexpr (W == Walk::kAlongRows) {
    if (p.power > 1) Raise<MR, NV>(p, acc);
  }
  if (p.apart) {
    ForTile<MR, NV>(p, acc, [&](VecOf<T>& x, const T* c) POLYATTN_LAMBDA {
      x = hn::Add(x, hn::LoadU(d, c));
    });
  }
  ForTile<MR, NV>(
      p, acc, [&](VecOf<T>& x, T* c) POLYATTN_LAMBDA { hn::StoreU(x, d, c); });
}

// The tile of `rows` <= MR rows.
template <int MR, int NV, Walk W, typename T>
HWY_INLINE void EndTile(std::int64_t rows, std::int64_t depth,
                        const Operands<T>& p, bool accumulate) {
  if constexpr (MR > 1) {
    if (rows < MR) return EndTile<MR - 1, NV, W>(rows, depth, p, accumulate);
  }
  Tile<MR, NV, W>(depth, p, accumulate);
}

// The tile of as many rows as NextRows() gives.
template <int NV, Walk W, typename T>
HWY_INLINE void AnyTile(std::int64_t rows, std::int64_t depth,
                        const Operands<T>& p, bool accumulate) {
  constexpr int kMost = kTileRows<NV>;
  if (rows == kMost) return Tile<kMost, NV, W>(depth, p, accumulate);
  EndTile<kMost - 1, NV, W>(rows, depth, p, accumulate);
}

// How many rows the next tile takes: all it can, unless that would leave an
// end of fewer than five, too few to hide the latency of a multiply-add.
template <int NV>
HWY_INLINE std::int64_t NextRows(std::int64_t left) {
  constexpr std::int64_t kMost = kTileRows<NV>;
  if (left >= kMost + 5 || left == kMost) return kMost;
  return left > kMost ? (left + 1) / 2 : left;
}

// All rows of a product with one panel of B; `next` takes a step at each tile.
template <int NV, Walk W, typename T>
HWY_NOINLINE void Rows(std::int64_t rows, std::int64_t depth, Operands<T> p,
                       bool accumulate, Prefetcher* next = nullptr) {
  while (rows > 0) {
    const std::int64_t count = NextRows<NV>(rows);
    AnyTile<NV, W>(count, depth, p, accumulate);
    if (next != nullptr) next->Step();
    p.a += count * (W == Walk::kAlongRows ? p.lda : 1);
    p.c += count * p.ldc;
    rows -= count;
  }
}

// All rows of a product with `width` columns: B in panels of kStrip columns,
// `panel` elements apart, all panels of a row tile before the next one, so
// that its part of A is read from the first-level cache. The last panel is
// computed a vector wide where that is enough; C must have room for it.
template <Walk W, typename T>
HWY_NOINLINE void RowsByPanels(std::int64_t rows, std::int64_t depth,
                               std::int64_t width, std::int64_t panel,
                               Operands<T> p, bool accumulate,
                               Prefetcher* next = nullptr) {
  constexpr int NV = kStripVectors;
  while (rows > 0) {
    const std::int64_t count = NextRows<NV>(rows);
    Operands<T> t = p;
    for (std::int64_t w = 0; w < width; w += kStrip<T>) {
      if (width - w > kLanes<T>) {
        AnyTile<NV, W>(count, depth, t, accumulate);
      } else {
        AnyTile<1, W>(count, depth, t, accumulate);
      }
      if (next != nullptr) next->Step();
      t.b += panel;
      t.c += kStrip<T>;
    }
    // Without depth there is no A.
    if (depth > 0) p.a += count * (W == Walk::kAlongRows ? p.lda : 1);
    p.c += count * p.ldc;
    rows -= count;
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#endif
