// One query at a time, for what is left over of a block beside full strips (the
// class token of a vision model, the single query of a decoder). Here the lanes
// are keys: scores are dot products along D, the output is summed along E, and
// the passes of weights-inl.h see a panel of one row's scores.
//
// Cost: a key takes (D + E) / L loads and as many multiply-adds, and a sum over
// the lanes; a strip of one vector takes D + E multiply-adds, whatever the
// number of its queries. So rows are cheaper up to about L / 2 of them.
#if defined(POLYATTN_KERNELS_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_ROW_INL_H_
#undef POLYATTN_KERNELS_ROW_INL_H_
#else
#define POLYATTN_KERNELS_ROW_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "core/kernels/panels-inl.h"
#include "core/kernels/tile-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

template <typename T>
inline constexpr std::int64_t kMostSingleRows = kLanes<T> / 2;

// Behind a vector of rows, to make that half a strip.
template <typename T>
inline constexpr std::int64_t kMostSplitRows = kLanes<T> / 8;

// How many of these rows, the last ones, go one by one.
template <typename T>
constexpr std::int64_t SingleRows(std::int64_t rows) {
  const std::int64_t rest = rows % kStrip<T>;
  if (rest <= kMostSingleRows<T>) return rest;
  const std::int64_t more = rest - kLanes<T>;
  return more > 0 && more <= kMostSplitRows<T> ? more : 0;
}

// to[i] = the sum of the lanes of sums[i].
template <typename T>
HWY_INLINE void SumEach(const VecOf<T> (&sums)[4], T* HWY_RESTRICT to) {
  POLYATTN_UNROLL
  for (int i = 0; i < 4; ++i)
    to[i] = hn::GetLane(hn::SumOfLanes(Tag<T>(), sums[i]));
}

#if HWY_TARGET == HWY_SCALAR
template <typename T>
HWY_INLINE void SumFour(const VecOf<T> (&sums)[4], T* HWY_RESTRICT to) {
  SumEach<T>(sums, to);
}
#else
// The sum of all blocks of four lanes.
template <class D, class V, typename T>
HWY_INLINE void StoreBlockSum(D d, V v, T* HWY_RESTRICT to) {
  if constexpr (hn::MaxLanes(D()) > 4) {
    const hn::Half<D> half;
    StoreBlockSum(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)),
                  to);
  } else {
    hn::StoreU(v, d, to);
  }
}

// The same, together: after two steps each block of four lanes holds a share of
// each sum, and blocks are added.
template <typename T>
HWY_INLINE void SumFour(const VecOf<T> (&sums)[4], T* HWY_RESTRICT to) {
  const Tag<T> d;
  if constexpr (sizeof(T) == 4) {
    const auto pairs = [&](VecOf<T> a, VecOf<T> b) POLYATTN_LAMBDA {
      return hn::Add(hn::InterleaveLower(d, a, b),
                     hn::InterleaveUpper(d, a, b));
    };
    const hn::Repartition<std::uint64_t, Tag<T> > wide;
    const auto ab = hn::BitCast(wide, pairs(sums[0], sums[1]));
    const auto cd = hn::BitCast(wide, pairs(sums[2], sums[3]));
    StoreBlockSum(d,
                  hn::Add(hn::BitCast(d, hn::InterleaveLower(wide, ab, cd)),
                          hn::BitCast(d, hn::InterleaveUpper(wide, ab, cd))),
                  to);
  } else {
    SumEach<T>(sums, to);
  }
}
#endif

// s[j] = q . k_j for `count` keys.
template <typename T>
HWY_NOINLINE void DotRows(const T* HWY_RESTRICT q, const RowsView<T>& k,
                          std::int64_t count, std::int64_t depth,
                          T* HWY_RESTRICT s) {
  const Tag<T> d;
  constexpr int L = kLanes<T>, kKeys = 4;
  const auto dots = [&]<int N>(std::int64_t j) POLYATTN_LAMBDA {
    VecOf<T> sum[N];
    T rest[N];
    POLYATTN_UNROLL
    for (int i = 0; i < N; ++i) {
      sum[i] = hn::Zero(d);
      rest[i] = 0;
    }
    std::int64_t c = 0;
    for (; c + L <= depth; c += L) {
      const auto qv = hn::LoadU(d, q + c);
      POLYATTN_UNROLL
      for (int i = 0; i < N; ++i)
        sum[i] =
            hn::MulAdd(qv, hn::LoadU(d, k.data + (j + i) * k.ld + c), sum[i]);
    }
    for (; c < depth; ++c) {
      POLYATTN_UNROLL
      for (int i = 0; i < N; ++i) rest[i] += q[c] * k.data[(j + i) * k.ld + c];
    }
    if constexpr (N == kKeys) {
      SumFour<T>(sum, s + j);
    } else {
      POLYATTN_UNROLL
      for (int i = 0; i < N; ++i)
        s[j + i] = hn::GetLane(hn::SumOfLanes(d, sum[i]));
    }
    if (depth % L == 0) return;
    POLYATTN_UNROLL
    for (int i = 0; i < N; ++i) s[j + i] += rest[i];
  };
  std::int64_t j = 0;
  for (; j + kKeys <= count; j += kKeys) dots.template operator()<kKeys>(j);
  for (; j < count; ++j) dots.template operator()<1>(j);
}

// o += sum_j w[j] v_j over `count` keys.
template <typename T>
HWY_NOINLINE void AddRows(const T* HWY_RESTRICT w, const RowsView<T>& v,
                          std::int64_t count, std::int64_t width,
                          T* HWY_RESTRICT o) {
  const Tag<T> d;
  constexpr int L = kLanes<T>, kMost = 8;
  // N vectors of columns, in sums over every kChains-th key: eight sums hide
  // the latency of a multiply-add.
  const auto columns = [&]<int N>(std::int64_t c) POLYATTN_LAMBDA {
    constexpr int kChains = kMost / N;
    VecOf<T> sum[kChains][N];
    POLYATTN_UNROLL
    for (int s = 0; s < kChains; ++s) {
      POLYATTN_UNROLL
      for (int i = 0; i < N; ++i)
        sum[s][i] = s == 0 ? hn::LoadU(d, o + c + i * L) : hn::Zero(d);
    }
    const T* HWY_RESTRICT row = v.data + c;
    const auto add = [&](int s, std::int64_t j) POLYATTN_LAMBDA {
      const auto wv = hn::Set(d, w[j]);
      POLYATTN_UNROLL
      for (int i = 0; i < N; ++i)
        sum[s][i] =
            hn::MulAdd(wv, hn::LoadU(d, row + s * v.ld + i * L), sum[s][i]);
    };
    std::int64_t j = 0;
    for (; j + kChains <= count; j += kChains, row += kChains * v.ld) {
      POLYATTN_UNROLL
      for (int s = 0; s < kChains; ++s) add(s, j + s);
    }
    for (; j < count; ++j, row += v.ld) add(0, j);
    POLYATTN_UNROLL
    for (int i = 0; i < N; ++i) {
      POLYATTN_UNROLL
      for (int s = 1; s < kChains; ++s)
        sum[0][i] = hn::Add(sum[0][i], sum[s][i]);
      hn::StoreU(sum[0][i], d, o + c + i * L);
    }
  };
  std::int64_t c = 0;
  for (; c + kMost * L <= width; c += kMost * L)
    columns.template operator()<kMost>(c);
  for (; c + 4 * L <= width; c += 4 * L) columns.template operator()<4>(c);
  for (; c + 2 * L <= width; c += 2 * L) columns.template operator()<2>(c);
  for (; c + L <= width; c += L) columns.template operator()<1>(c);
  for (; c < width; ++c) {
    T sum = o[c];
    for (std::int64_t j = 0; j < count; ++j) sum += w[j] * v.data[j * v.ld + c];
    o[c] = sum;
  }
}

// All lanes are keys of one row: they share its maximum.
template <typename T>
HWY_INLINE void ShareTop(T* top) {
  const T most = *std::max_element(top, top + kStrip<T>);
  std::fill_n(top, kStrip<T>, most);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#endif
