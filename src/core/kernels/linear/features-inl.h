// Features (core/features.h) of many tokens at once, in arrays [rows, ld] that
// have a token in each column, and the way back: from gradients by features to
// gradients by the tokens.
//
// Cost: a feature of L tokens takes a product, a load and a store, against E
// multiply-adds of the matrix product that it is made for.
#if defined(POLYATTN_KERNELS_LINEAR_FEATURES_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_LINEAR_FEATURES_INL_H_
#undef POLYATTN_KERNELS_LINEAR_FEATURES_INL_H_
#else
#define POLYATTN_KERNELS_LINEAR_FEATURES_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/features.h"
#include "core/kernels/tile-inl.h"
#include "core/linear_plan.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

// Vectors that are worked on together: they divide a strip of tokens.
template <typename T>
inline constexpr int kColumnVectors = std::min<int>(6,
                                                    kStripTokens / kLanes<T>);
template <typename T>
inline constexpr int kColumnStep = kColumnVectors<T>* kLanes<T>;

// Tokens x[D, ld], of which the first `columns`, a multiple of kStripTokens,
// are worked on.
template <typename T>
struct Columns {
  const T* x;
  std::int64_t ld;
  std::int64_t columns;

  const T* row(std::int64_t i) const { return x + i * ld; }
};

// Products of the prefixes of runs, kept from run to run as far as they are the
// same.
template <typename T>
class PrefixProducts {
 public:
  // Room for [kMaxDegree, ld].
  PrefixProducts(const Columns<T>& in, T* room) : in_(in), room_(room) {}

  // Makes at(0) .. at(degree - 1) those of the run.
  void Prepare(const FeatureRun& run) {
    const int length = std::max(run.degree - 1, 0);
    int same = 0;
    while (same < std::min(length, length_) &&
           run.prefix[same] == prefix_[same])
      ++same;
    for (int l = same; l < length; ++l) {
      const T* factor = in_.row(run.prefix[l]);
      at_[l + 1] = l == 0 ? factor : Times(at_[l], factor, room_ + l * in_.ld);
    }
    prefix_ = run.prefix;
    length_ = length;
  }

  // The product of the first l indices; null for none.
  const T* at(int l) const { return at_[l]; }

 private:
  const T* Times(const T* a, const T* b, T* to) const {
    const Tag<T> d;
    for (std::int64_t c = 0; c < in_.columns; c += kLanes<T>)
      hn::StoreU(hn::Mul(hn::LoadU(d, a + c), hn::LoadU(d, b + c)), d, to + c);
    return to;
  }

  const Columns<T> in_;
  T* room_;
  std::array<const T*, kMaxDegree + 1> at_{};
  std::array<std::int32_t, kMaxDegree> prefix_{};
  int length_ = 0;
};

// out[leaf, c] = weight * prefix[c] * x[first + leaf, c] for `count` leaves.
template <typename T>
HWY_INLINE void MakeLeaves(const Columns<T>& in, const T* prefix, T weight,
                           std::int64_t first, std::int64_t count, T* out) {
  const Tag<T> d;
  constexpr int NV = kColumnVectors<T>, L = kLanes<T>;
  const auto w = hn::Set(d, weight);
  for (std::int64_t c = 0; c < in.columns; c += kColumnStep<T>) {
    VecOf<T> p[NV];
    POLYATTN_UNROLL
    for (int v = 0; v < NV; ++v)
      p[v] =
          prefix == nullptr ? w : hn::Mul(w, hn::LoadU(d, prefix + c + v * L));
    const T* HWY_RESTRICT x = in.row(first) + c;
    T* HWY_RESTRICT to = out + c;
    for (std::int64_t leaf = 0; leaf < count; ++leaf) {
      POLYATTN_UNROLL
      for (int v = 0; v < NV; ++v)
        hn::StoreU(hn::Mul(p[v], hn::LoadU(d, x + v * L)), d, to + v * L);
      x += in.ld;
      to += in.ld;
    }
  }
}

// The next `count` features: out[count, ld]. `weighted`: times w.
template <typename T>
HWY_NOINLINE void MakeFeatures(FeatureCursor& cursor, std::int64_t count,
                               const Columns<T>& in, bool weighted, T* room,
                               T* out) {
  PrefixProducts<T> products(in, room);
  while (count > 0) {
    const FeatureRun run = cursor.next(count);
    if (run.count == 0) return;
    const T w = weighted ? static_cast<T>(run.weight) : T{1};
    const T w1 = weighted ? static_cast<T>(run.first_weight) : T{1};
    if (run.degree == 0) {
      std::fill_n(out, in.columns, w);
    } else {
      products.Prepare(run);
      const T* prefix = products.at(run.degree - 1);
      const std::int64_t apart = w1 == w ? 0 : 1;
      if (apart != 0) MakeLeaves(in, prefix, w1, run.first, 1, out);
      MakeLeaves(in, prefix, w, run.first + apart, run.count - apart,
                 out + apart * in.ld);
    }
    out += run.count * in.ld;
    count -= run.count;
  }
}

// From the gradients g[leaf, c] by the features of a run: adds to the rows of
// dx those by their last factors, and gives those by the prefix.
template <typename T>
HWY_INLINE void ReduceLeaves(const FeatureRun& run, const Columns<T>& in,
                             const T* prefix, const T* g, T* dx,
                             T* HWY_RESTRICT by_prefix) {
  const Tag<T> d;
  constexpr int NV = kColumnVectors<T>, L = kLanes<T>;
  for (std::int64_t c = 0; c < in.columns; c += kColumnStep<T>) {
    VecOf<T> p[NV], sum[NV];
    POLYATTN_UNROLL
    for (int v = 0; v < NV; ++v) {
      p[v] = prefix == nullptr ? hn::Set(d, T{1})
                               : hn::LoadU(d, prefix + c + v * L);
      sum[v] = hn::Zero(d);
    }
    const T* HWY_RESTRICT from = g + c;
    const T* HWY_RESTRICT x = in.row(run.first) + c;
    T* HWY_RESTRICT to = dx + run.first * in.ld + c;
    T weight = static_cast<T>(run.first_weight);
    for (std::int64_t leaf = 0; leaf < run.count; ++leaf) {
      const auto w = hn::Set(d, weight);
      POLYATTN_UNROLL
      for (int v = 0; v < NV; ++v) {
        const auto gv = hn::Mul(w, hn::LoadU(d, from + v * L));
        sum[v] = hn::MulAdd(gv, hn::LoadU(d, x + v * L), sum[v]);
        hn::StoreU(hn::MulAdd(gv, p[v], hn::LoadU(d, to + v * L)), d,
                   to + v * L);
      }
      weight = static_cast<T>(run.weight);
      from += in.ld;
      x += in.ld;
      to += in.ld;
    }
    POLYATTN_UNROLL
    for (int v = 0; v < NV; ++v) hn::StoreU(sum[v], d, by_prefix + c + v * L);
  }
}

// Takes the gradients g[c] by a prefix on to its factors: dx += g * product of
// the others.
template <typename T>
HWY_INLINE void ReducePrefix(const FeatureRun& run, const Columns<T>& in,
                             const PrefixProducts<T>& products, T* g, T* dx) {
  const Tag<T> d;
  for (int l = run.degree - 1; l > 0; --l) {
    const std::int64_t index = run.prefix[l - 1];
    const T* rest = products.at(l - 1);
    const T* x = in.row(index);
    T* to = dx + index * in.ld;
    for (std::int64_t c = 0; c < in.columns; c += kLanes<T>) {
      const auto gv = hn::LoadU(d, g + c);
      const auto share =
          rest == nullptr ? gv : hn::Mul(gv, hn::LoadU(d, rest + c));
      hn::StoreU(hn::Add(share, hn::LoadU(d, to + c)), d, to + c);
      if (l > 1) hn::StoreU(hn::Mul(gv, hn::LoadU(d, x + c)), d, g + c);
    }
  }
}

// From gradients g[count, ld] by the next `count` features without their
// weights: adds to dx[D, ld] those by the tokens. Room for [kMaxDegree + 1,
// ld].
template <typename T>
HWY_NOINLINE void ReduceFeatures(FeatureCursor& cursor, std::int64_t count,
                                 const Columns<T>& in, const T* g, T* room,
                                 T* dx) {
  PrefixProducts<T> products(in, room);
  T* by_prefix = room + kMaxDegree * in.ld;
  while (count > 0) {
    const FeatureRun run = cursor.next(count);
    if (run.count == 0) return;
    if (run.degree > 0) {
      products.Prepare(run);
      ReduceLeaves(run, in, products.at(run.degree - 1), g, dx, by_prefix);
      ReducePrefix(run, in, products, by_prefix, dx);
    }
    g += run.count * in.ld;
    count -= run.count;
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#endif
