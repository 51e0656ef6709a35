// What the tasks of a backward call share, and the accumulators that they add
// to: made zero before, written out after.
#if defined(POLYATTN_KERNELS_DENSE_BACKWARD_SUMS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_DENSE_BACKWARD_SUMS_INL_H_
#undef POLYATTN_KERNELS_DENSE_BACKWARD_SUMS_INL_H_
#else
#define POLYATTN_KERNELS_DENSE_BACKWARD_SUMS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "core/kernels/pack-inl.h"
#include "core/kernels/panels-inl.h"
#include "core/plan.h"
#include "core/weights.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

// A range of queries or keys.
struct Range {
  std::int64_t begin, end;
  bool empty() const { return begin >= end; }
};

inline Range ChunkRange(std::int64_t chunk, std::int64_t size,
                        std::int64_t total) {
  return {std::min(chunk * size, total), std::min((chunk + 1) * size, total)};
}

// What all tasks of a call share.
template <typename T>
struct BackwardCall {
  const Problem& p;
  const BackwardPlan& plan;
  const AttentionBackwardInputs& in;
  const AttentionGradients& out;
  WeightParams<T> params;
  bool score_grads() const { return out.dq || out.dk || out.d_bias; }
};

// The accumulators of one pair.
template <typename T>
class PairSums {
 public:
  PairSums(const BackwardCall<T>& call, const Accumulators<T>& sums,
           std::int64_t pair)
      : call_(call),
        p_(call.p),
        sums_(sums),
        b_(pair / p_.kv_heads),
        g_(pair % p_.kv_heads),
        seq_(p_.sequence(b_)) {}

  // The part of a chunk of queries and a chunk of keys.
  void Clear(std::int64_t chunk) const {
    const std::int64_t rows = call_.plan.q_chunk;
    const Range k = Keys(chunk);
    for (std::int64_t m = 0; m < Group(); ++m)
      std::fill_n(sums_.dq + (m * sums_.head_rows + chunk * rows) * p_.d,
                  rows * p_.d, T{0});
    std::fill(sums_.dk + k.begin * sums_.d_width,
              sums_.dk + k.end * sums_.d_width, T{0});
    std::fill(sums_.dv + k.begin * sums_.e_width,
              sums_.dv + k.end * sums_.e_width, T{0});
  }

  void Write(std::int64_t chunk, const RowBuffer<T>& buffer) const {
    const Range k = Keys(chunk);
    if (call_.out.dq) WriteQueries(chunk, buffer);
    if (call_.out.dk) WriteKeys(*call_.out.dk, k, sums_.dk, sums_.d_width);
    if (call_.out.dv) WriteKeys(*call_.out.dv, k, sums_.dv, sums_.e_width);
  }

 private:
  std::int64_t Group() const { return p_.heads / p_.kv_heads; }
  Range Keys(std::int64_t chunk) const {
    return ChunkRange(chunk, call_.plan.k_chunk, seq_.m);
  }

  void WriteQueries(std::int64_t chunk, const RowBuffer<T>& buffer) const {
    const Range q = ChunkRange(chunk, call_.plan.q_chunk, seq_.n);
    const Tensor& out = *call_.out.dq;
    alignas(64) T scale[kMaxStrip];
    std::fill_n(scale, kMaxStrip, static_cast<T>(p_.scale));
    for (std::int64_t m = 0; m < Group(); ++m) {
      for (std::int64_t i = q.begin; i < q.end; i += kStrip<T>) {
        const RowTarget dst = {
            &out, row_offset(out.stride, seq_.batch, g_ * Group() + m,
                             seq_.q_begin + i)};
        UnpackColumns<T>(sums_.dq + (m * sums_.head_rows + i) * p_.d, p_.d,
                         std::min<std::int64_t>(kStrip<T>, q.end - i), scale,
                         buffer, dst, false);
      }
    }
  }

  void WriteKeys(const Tensor& out, const Range& k, const T* sums,
                 std::int64_t width) const {
    for (std::int64_t j = k.begin; j < k.end; ++j)
      StoreRow(sums + j * width, out.size[3], T{1}, out.data, out.dtype,
               row_offset(out.stride, seq_.batch, g_, seq_.k_begin + j));
  }

  const BackwardCall<T>& call_;
  const Problem& p_;
  const Accumulators<T>& sums_;
  const std::int64_t b_, g_;
  const Sequence seq_;
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#endif
