// Dropout (core/dropout.h) in vectors: the generator runs in lanes of 64 bits,
// the room of its products, and a block of it gives the bits of four keys.
//
//   a panel, queries in lanes:   for each four keys, one block for each query
//   a row, keys in lanes:        one block in each lane, four keys each
#if defined(POLYATTN_KERNELS_DENSE_DROPOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_DENSE_DROPOUT_INL_H_
#undef POLYATTN_KERNELS_DENSE_DROPOUT_INL_H_
#else
#define POLYATTN_KERNELS_DENSE_DROPOUT_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/dropout.h"
#include "core/kernels/tile-inl.h"
#include "core/problem.h"
#include "core/visibility.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

// panel[rows, ld] = 0 where dropped[rows, W] has bits; NV vectors of each row.
template <int NV, typename T>
HWY_INLINE void ZeroDropped(const T* dropped, std::int64_t rows, T* panel,
                            std::int64_t ld) {
  const Tag<T> d;
  for (std::int64_t r = 0; r < rows; ++r) {
    POLYATTN_UNROLL
    for (int v = 0; v < NV; ++v) {
      T* at = panel + r * ld + v * kLanes<T>;
      const auto gone = hn::Load(d, dropped + r * kStrip<T> + v * kLanes<T>);
      hn::StoreU(hn::AndNot(gone, hn::LoadU(d, at)), d, at);
    }
  }
}

#if HWY_TARGET != HWY_SCALAR

template <typename T>
using WordTag = hn::Repartition<std::uint32_t, Tag<T>>;
template <typename T>
using WideTag = hn::Repartition<std::uint64_t, Tag<T>>;
template <typename T>
using WideOf = hn::Vec<WideTag<T>>;

// Four words of the generator in each lane. What is above their 32 bits is not
// zero.
template <typename T>
struct WordsOf {
  WideOf<T> c0, c1, c2, c3;
};

template <typename T>
HWY_INLINE WordsOf<T> PhiloxOf(WordsOf<T> c, PhiloxKey key) {
  const WordTag<T> d32;
  const WideTag<T> d64;
  const auto m0 = hn::Set(d32, kPhiloxFactor[0]);
  const auto m1 = hn::Set(d32, kPhiloxFactor[1]);
  POLYATTN_UNROLL
  for (int i = 0; i < kPhiloxRounds; ++i) {
    const auto a = hn::MulEven(hn::BitCast(d32, c.c0), m0);
    const auto b = hn::MulEven(hn::BitCast(d32, c.c2), m1);
    const auto k0 = hn::Set(d64, std::uint64_t{key[0]});
    const auto k1 = hn::Set(d64, std::uint64_t{key[1]});
    c.c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(b), c.c1), k0);
    c.c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(a), c.c3), k1);
    c.c1 = b;
    c.c3 = a;
    key[0] += kPhiloxStep[0];
    key[1] += kPhiloxStep[1];
  }
  return c;
}

// Bits where the word of a row is below the threshold: of rows in lanes of
// floats the even ones are in `even` and the others in `odd`.
HWY_INLINE VecOf<float> BitsOfDropped(WideOf<float> even, WideOf<float> odd,
                                      std::uint32_t below) {
  const WordTag<float> d32;
  const hn::Repartition<std::int32_t, Tag<float>> di;
  constexpr std::uint32_t kSign = 0x80000000;  // to compare as signed ones
  const auto words = hn::OddEven(hn::BitCast(d32, hn::ShiftLeft<32>(odd)),
                                 hn::BitCast(d32, even));
  const auto x = hn::BitCast(di, hn::Xor(words, hn::Set(d32, kSign)));
  const auto limit = hn::BitCast(di, hn::Set(d32, below ^ kSign));
  return hn::BitCast(Tag<float>(), hn::VecFromMask(di, hn::Lt(x, limit)));
}

HWY_INLINE VecOf<double> BitsOfDropped(WideOf<double> words,
                                       std::uint32_t below) {
  const WideTag<double> d64;
  const hn::Repartition<std::int64_t, Tag<double>> di;
  const auto x =
      hn::BitCast(di, hn::And(words, hn::Set(d64, std::uint64_t{0xffffffff})));
  const auto limit = hn::Set(di, std::int64_t{below});
  return hn::BitCast(Tag<double>(), hn::VecFromMask(di, hn::Lt(x, limit)));
}

#endif  // HWY_TARGET != HWY_SCALAR

// What a call removes.
template <typename T>
class Dropper {
 public:
  explicit Dropper(const Problem& p)
      : dropout_(p.dropout),
        on_(p.dropout.p > 0),
        below_(drop_below(p.dropout.p)),
        key_(philox_key(p.dropout.seed)) {}

  bool on() const { return on_; }
  double factor() const { return on_ ? kept_factor(dropout_) : 1; }

#if HWY_TARGET == HWY_SCALAR

  // dropped[cols, W]: bits where a weight of the block goes, whose queries are
  // in NV vectors.
  template <int NV>
  void Find(const ScoreBlock& at, T* dropped) const {
    for (std::int64_t c = 0; c < at.cols; ++c) {
      for (int v = 0; v < NV * kLanes<T>; ++v) {
        const bool gone = is_dropped(dropout_, at.b, at.h, at.i + v, at.j + c);
        std::memset(dropped + c * kStrip<T> + v, gone ? 0xff : 0, sizeof(T));
      }
    }
  }

  // Of a single query: weights[cols].
  void ZeroRow(const ScoreBlock& at, T* weights) const {
    for (std::int64_t c = 0; c < at.cols; ++c)
      if (is_dropped(dropout_, at.b, at.h, at.i, at.j + c)) weights[c] = 0;
  }

#else

  template <int NV>
  HWY_INLINE void Find(const ScoreBlock& at, T* dropped) const {
    const Tag<T> d;
    const std::int64_t end = at.j + at.cols;
    for (std::int64_t j = at.j / 4 * 4; j < end; j += 4) {
      POLYATTN_UNROLL
      for (int v = 0; v < NV; ++v) {
        VecOf<T> bits[4];
        OfFourKeys(at, j / 4, at.i + v * kLanes<T>, bits);
        POLYATTN_UNROLL
        for (int c = 0; c < 4; ++c) {
          const std::int64_t row = j + c - at.j;
          if (row >= 0 && row < at.cols)
            hn::Store(bits[c], d, dropped + row * kStrip<T> + v * kLanes<T>);
        }
      }
    }
  }

  HWY_INLINE void ZeroRow(const ScoreBlock& at, T* weights) const {
    const WideTag<T> d;
    constexpr std::int64_t kBlocks = kLanes<T> * sizeof(T) / 8;
    alignas(64) std::uint64_t words[4][kBlocks];
    const std::int64_t end = at.j + at.cols;
    for (std::int64_t j = at.j / 4 * 4; j < end; j += 4 * kBlocks) {
      const WordsOf<T> c =
          Words(at, hn::Iota(d, static_cast<std::uint64_t>(j / 4)), Wide(at.i));
      hn::Store(c.c0, d, words[0]);
      hn::Store(c.c1, d, words[1]);
      hn::Store(c.c2, d, words[2]);
      hn::Store(c.c3, d, words[3]);
      const std::int64_t from = std::max(j, at.j);
      const std::int64_t to = std::min(j + 4 * kBlocks, end);
      for (std::int64_t key = from; key < to; ++key) {
        const std::uint64_t word = words[key % 4][(key - j) / 4];
        if (static_cast<std::uint32_t>(word) < below_) weights[key - at.j] = 0;
      }
    }
  }

 private:
  static HWY_INLINE WideOf<T> Wide(std::int64_t x) {
    return hn::Set(WideTag<T>(), static_cast<std::uint64_t>(x));
  }

  HWY_INLINE WordsOf<T> Words(const ScoreBlock& at, WideOf<T> four,
                              WideOf<T> queries) const {
    return PhiloxOf<T>(
        {four, queries, Wide(dropout_.first_head + at.h), Wide(at.b)}, key_);
  }

  // Those of keys 4 four, 4 four + 1, ... and a vector of queries.
  HWY_INLINE void OfFourKeys(const ScoreBlock& at, std::int64_t four,
                             std::int64_t first, VecOf<T> (&bits)[4]) const {
    const auto lanes = hn::Iota(WideTag<T>(), std::uint64_t{0});
    if constexpr (sizeof(T) == 4) {
      const auto even = hn::Add(hn::ShiftLeft<1>(lanes), Wide(first));
      const WordsOf<T> a = Words(at, Wide(four), even);
      const WordsOf<T> b = Words(at, Wide(four), hn::Add(even, Wide(1)));
      bits[0] = BitsOfDropped(a.c0, b.c0, below_);
      bits[1] = BitsOfDropped(a.c1, b.c1, below_);
      bits[2] = BitsOfDropped(a.c2, b.c2, below_);
      bits[3] = BitsOfDropped(a.c3, b.c3, below_);
    } else {
      const WordsOf<T> a = Words(at, Wide(four), hn::Add(lanes, Wide(first)));
      bits[0] = BitsOfDropped(a.c0, below_);
      bits[1] = BitsOfDropped(a.c1, below_);
      bits[2] = BitsOfDropped(a.c2, below_);
      bits[3] = BitsOfDropped(a.c3, below_);
    }
  }

#endif  // HWY_TARGET == HWY_SCALAR

 private:
  const Dropout& dropout_;
  const bool on_;
  const std::uint32_t below_;
  const PhiloxKey key_;
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#endif
