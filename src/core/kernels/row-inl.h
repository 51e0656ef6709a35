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
    POLYATTN_UNROLL
    for (int i = 0; i < N; ++i)
      s[j + i] = hn::GetLane(hn::SumOfLanes(d, sum[i])) + rest[i];
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
