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
#include <optional>

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

// Row r begins at data + r * ld.
template <typename T>
struct RowsAt {
  T* data;
  std::int64_t ld;
};

// The sums of one pair. They are made where the caller wants them, if that has
// the type that is computed in and room for whole vectors; otherwise in the
// accumulators, from which they are then written out.
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

  // The first row is that of the sequence; dq is without the scale.
  RowsAt<T> dq(std::int64_t member) const {
    if (InPlace(call_.out.dq))
      return At(*call_.out.dq, Head(member), seq_.q_begin);
    return {sums_.dq + member * sums_.head_rows * sums_.d_width, sums_.d_width};
  }
  RowsAt<T> dk() const {
    if (InPlace(call_.out.dk)) return At(*call_.out.dk, g_, seq_.k_begin);
    return {sums_.dk, sums_.d_width};
  }
  RowsAt<T> dv() const {
    if (InPlace(call_.out.dv)) return At(*call_.out.dv, g_, seq_.k_begin);
    return {sums_.dv, sums_.e_width};
  }

  // A worker that finishes the pair, all of whose rows see all keys, writes the
  // first products over what is there: nothing has to be cleared.
  bool overwritten() const {
    return call_.plan.chunks == 1 && p_.causal == Causal::kNone &&
           !p_.windowed() && Group() > 0 && seq_.n > 0 && seq_.m > 0;
  }

  // The part of a chunk of queries and a chunk of keys.
  void Clear(std::int64_t chunk) const {
    const Range q = Queries(chunk), k = Keys(chunk);
    for (std::int64_t m = 0; m < Group() && call_.out.dq; ++m)
      Fill(dq(m), q, Width(*call_.out.dq));
    if (call_.out.dk) Fill(dk(), k, Width(*call_.out.dk));
    if (call_.out.dv) Fill(dv(), k, Width(*call_.out.dv));
  }

  void Write(std::int64_t chunk) const {
    const Range q = Queries(chunk), k = Keys(chunk);
    const T scale = static_cast<T>(p_.scale);
    for (std::int64_t m = 0; m < Group() && call_.out.dq; ++m)
      Store(*call_.out.dq, dq(m), q, scale, Head(m), seq_.q_begin);
    if (call_.out.dk && !InPlace(call_.out.dk))
      Store(*call_.out.dk, dk(), k, T{1}, g_, seq_.k_begin);
    if (call_.out.dv && !InPlace(call_.out.dv))
      Store(*call_.out.dv, dv(), k, T{1}, g_, seq_.k_begin);
  }

 private:
  std::int64_t Group() const { return p_.heads / p_.kv_heads; }
  std::int64_t Head(std::int64_t member) const { return g_ * Group() + member; }
  Range Queries(std::int64_t chunk) const {
    return ChunkRange(chunk, call_.plan.q_chunk, seq_.n);
  }
  Range Keys(std::int64_t chunk) const {
    return ChunkRange(chunk, call_.plan.k_chunk, seq_.m);
  }

  // Rows that lie far apart would cost more cache and page entries than
  // accumulators.
  static bool InPlace(const std::optional<Tensor>& t) {
    return t && t->size[3] % kLanes<T> == 0 && !needs_copy(*t, kDTypeOf<T>);
  }

  // Elements of a row that are added to: whole vectors.
  static std::int64_t Width(const Tensor& t) {
    return ceil_div(t.size[3], kLanes<T>) * kLanes<T>;
  }

  RowsAt<T> At(const Tensor& t, std::int64_t head, std::int64_t row) const {
    return {
        static_cast<T*>(t.data) + row_offset(t.stride, seq_.batch, head, row),
        t.stride[2]};
  }

  static void Fill(const RowsAt<T>& to, const Range& rows, std::int64_t width) {
    for (std::int64_t r = rows.begin; r < rows.end; ++r)
      std::fill_n(to.data + r * to.ld, width, T{0});
  }

  void Store(const Tensor& out, const RowsAt<T>& from, const Range& rows,
             T scale, std::int64_t head, std::int64_t first) const {
    for (std::int64_t r = rows.begin; r < rows.end; ++r)
      StoreRow(from.data + r * from.ld, out.size[3], scale, out.data, out.dtype,
               row_offset(out.stride, seq_.batch, head, first + r));
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
