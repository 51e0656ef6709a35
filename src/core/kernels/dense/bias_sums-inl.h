// The gradient of the bias: tiles add the gradients of their scores to a part
// of the sums (see BiasPlan), and the parts are then added up and written out.
#if defined(POLYATTN_KERNELS_DENSE_BIAS_SUMS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_DENSE_BIAS_SUMS_INL_H_
#undef POLYATTN_KERNELS_DENSE_BIAS_SUMS_INL_H_
#else
#define POLYATTN_KERNELS_DENSE_BIAS_SUMS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "core/kernels/dense/backward_sums-inl.h"
#include "core/kernels/pack-inl.h"
#include "core/kernels/panels-inl.h"
#include "core/plan.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

// Gradients of scores, [keys, ld], in NV vectors of queries.
template <typename T>
struct ScoreGrads {
  const T* data;
  std::int64_t ld, keys;
  std::int64_t queries;  // in the lanes behind them is anything
};

// Adds them to sums[keys, W]; to its only row if keys share theirs.
template <int NV, typename T>
HWY_INLINE void AddScoreGrads(const ScoreGrads<T>& grads, bool share, T* sums) {
  const Tag<T> d;
  POLYATTN_UNROLL
  for (int v = 0; v < NV; ++v) {
    const std::int64_t left = grads.queries - v * kLanes<T>;
    const auto real = hn::FirstN(
        d, static_cast<std::size_t>(std::max<std::int64_t>(left, 0)));
    const T* from = grads.data + v * kLanes<T>;
    T* to = sums + v * kLanes<T>;
    if (share) {
      auto sum = hn::Load(d, to);
      for (std::int64_t r = 0; r < grads.keys; ++r, from += grads.ld)
        sum = hn::Add(sum, hn::IfThenElseZero(real, hn::Load(d, from)));
      hn::Store(sum, d, to);
      continue;
    }
    for (std::int64_t r = 0; r < grads.keys;
         ++r, from += grads.ld, to += kStrip<T>) {
      const auto own = hn::IfThenElseZero(real, hn::Load(d, from));
      hn::Store(hn::Add(hn::Load(d, to), own), d, to);
    }
  }
}

// The panel of strip `strip` of head h of sequence b in a part of the sums,
// from key j on.
template <typename T>
HWY_INLINE T* BiasSumsOf(const Problem& p, const BiasPlan& plan,
                         const BiasSums<T>& sums, std::int64_t part,
                         const ScoreBlock& at) {
  const Extents& size = p.in.bias->size;
  const std::int64_t slice =
      at.b % size[0] * size[1] + (size[1] == 1 ? 0 : at.h);
  const std::int64_t strip = plan.strips == 1 ? 0 : at.i / kStrip<T>;
  return sums.data + part * sums.part_size + slice * sums.slice_size +
         (strip * plan.keys + (plan.keys == 1 ? 0 : at.j)) * kStrip<T>;
}

// One slice of the sums, from zero to the caller's tensor.
template <typename T>
class BiasSlice {
 public:
  BiasSlice(const BackwardCall<T>& call, const BiasSums<T>& sums,
            std::int64_t slice)
      : call_(call),
        plan_(call.plan.bias),
        out_(*call.out.d_bias),
        sums_(sums),
        slice_(slice) {}

  void Clear(std::int64_t part) const {
    std::fill_n(Part(part), sums_.slice_size, T{0});
  }

  void Write(const RowBuffer<T>& buffer) const {
    for (std::int64_t part = 1; part < plan_.parts; ++part) AddPart(part);
    const std::int64_t index = row_offset(out_.stride, slice_ / out_.size[1],
                                          slice_ % out_.size[1], 0);
    if (out_.size[2] == 1) {
      WriteRow(index, buffer);
    } else {
      WriteRows(index, buffer);
    }
  }

 private:
  T* Part(std::int64_t part) const {
    return sums_.data + part * sums_.part_size + slice_ * sums_.slice_size;
  }

  void AddPart(std::int64_t part) const {
    const Tag<T> d;
    T* to = Part(0);
    const T* from = Part(part);
    for (std::int64_t i = 0; i < sums_.slice_size; i += kLanes<T>)
      hn::Store(hn::Add(hn::Load(d, to + i), hn::Load(d, from + i)), d, to + i);
  }

  void WriteRows(std::int64_t index, const RowBuffer<T>& buffer) const {
    alignas(64) T one[kMaxStrip];
    std::fill_n(one, kMaxStrip, T{1});
    for (std::int64_t i = 0; i < out_.size[2]; i += kStrip<T>) {
      const T* panel = Part(0) + i * plan_.keys;
      const std::int64_t rows =
          std::min<std::int64_t>(kStrip<T>, out_.size[2] - i);
      for (std::int64_t j = 0; j < plan_.keys; j += buffer.ld)
        UnpackColumns<T>(panel + j * kStrip<T>,
                         std::min(buffer.ld, plan_.keys - j), rows, one, buffer,
                         {&out_, index + i * out_.stride[2] + j}, false);
    }
  }

  // All queries share it.
  void WriteRow(std::int64_t index, const RowBuffer<T>& buffer) const {
    for (std::int64_t j = 0; j < plan_.keys; j += buffer.ld) {
      const std::int64_t count = std::min(buffer.ld, plan_.keys - j);
      for (std::int64_t c = 0; c < count; ++c) buffer.data[c] = KeySum(j + c);
      StoreRow(buffer.data, count, T{1}, out_.data, out_.dtype, index + j);
    }
  }

  T KeySum(std::int64_t j) const {
    const Tag<T> d;
    auto sum = hn::Zero(d);
    for (std::int64_t s = 0; s < plan_.strips; ++s)
      for (int v = 0; v < kStripVectors; ++v)
        sum = hn::Add(sum,
                      hn::Load(d, Part(0) + (s * plan_.keys + j) * kStrip<T> +
                                      v * kLanes<T>));
    return hn::GetLane(hn::SumOfLanes(d, sum));
  }

  const BackwardCall<T>& call_;
  const BiasPlan& plan_;
  const Tensor& out_;
  const BiasSums<T>& sums_;
  const std::int64_t slice_;
};

template <typename T>
void ClearBiasSums(const BackwardCall<T>& call, const BiasSums<T>& sums,
                   Parallel& parallel) {
  if (!call.out.d_bias) return;
  const BiasPlan& plan = call.plan.bias;
  parallel.run(plan.parts * plan.slices, [&](std::int64_t task, int) {
    BiasSlice<T>(call, sums, task % plan.slices).Clear(task / plan.slices);
  });
}

// Storage is that of backward, or of its derivative.
template <typename T, typename Storage>
void WriteBiasSums(const BackwardCall<T>& call, const Storage& storage,
                   Parallel& parallel) {
  if (!call.out.d_bias) return;
  parallel.run(call.plan.bias.slices, [&](std::int64_t slice, int worker) {
    const auto scratch = storage.rooms.of(worker);
    BiasSlice<T>(call, storage.bias, slice)
        .Write({scratch.rows, scratch.row_width});
  });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#endif
