#include "core/linear_dense.h"

#include <algorithm>

namespace polyattn {
namespace {

const void* advanced(const ConstTensor& t, std::int64_t elements) {
  return static_cast<const std::byte*>(t.data) +
         elements * static_cast<std::int64_t>(size_of(t.dtype));
}

template <typename T>
std::size_t bytes_of(const Problem& sub, int strip, bool backward) {
  Arena arena(nullptr);
  if (backward) {
    BackwardStorage<T>(arena, sub, plan_backward(sub, strip), 1);
  } else {
    ForwardStorage<T>(arena, sub, plan_forward(sub, strip), 1);
  }
  return arena.used() + Arena::kAlignment;
}

}  // namespace

ConstTensor slice_rows(const ConstTensor& t, std::int64_t batch,
                       const Range& heads, const Range& rows) {
  ConstTensor part = t;
  part.data = advanced(t, row_offset(t.stride, batch, heads.begin, rows.begin));
  part.size = {1, heads.count, rows.count, t.size[3]};
  return part;
}

Problem chunk_problem(const Problem& p, const ChunkHeads& heads,
                      const ChunkRows& rows, bool raw) {
  Problem sub = p;
  const Sequence& s = heads.seq;
  sub.batch = 1;
  sub.heads = heads.count;
  sub.kv_heads = 1;
  sub.n = rows.q1 - rows.q0;
  sub.m = rows.k1 - rows.k0;
  sub.in.q_offsets = {};
  sub.in.k_offsets = {};
  sub.in.q = slice_rows(p.in.q, s.batch, {heads.first, heads.count},
                        {s.q_begin + rows.q0, sub.n});
  sub.in.k =
      slice_rows(p.in.k, s.batch, {heads.key, 1}, {s.k_begin + rows.k0, sub.m});
  sub.in.v =
      slice_rows(p.in.v, s.batch, {heads.key, 1}, {s.k_begin + rows.k0, sub.m});
  if (p.in.mask) {
    ConstMask& mask = *sub.in.mask;
    mask.data += broadcast_offset(mask.size, mask.stride, heads.b, heads.first,
                                  0, rows.k0);
    const std::int64_t columns = mask.size[3] == 1 ? 1 : sub.m;
    mask.size = {1, 1, 1, columns};
  }
  // The first query has the time of the first key, or the last that of the
  // last.
  const TimeLine line(p, s);
  sub.causal = rows.q0 + line.shift == rows.k0 ? Causal::kFirst : Causal::kLast;
  if (raw && p.activation.divisor != Divisor::kSum)
    sub.activation.divisor = Divisor::kOne;
  return sub;
}

template <typename T>
std::size_t dense_chunk_bytes(const Problem& p, const LinearPlan& plan,
                              int strip, bool backward) {
  std::size_t most = 0;
  Problem sub = p;
  sub.in.q_offsets = {};
  sub.in.k_offsets = {};
  sub.batch = 1;
  sub.heads = backward && p.kv_heads > 0 ? p.heads / p.kv_heads : 1;
  sub.kv_heads = 1;
  // Keys count in full; how queries are cut into blocks depends on how many
  // strips there are.
  sub.m = plan.chunk;
  for (std::int64_t n = strip; n < plan.chunk + strip; n += strip) {
    sub.n = std::min(n, plan.chunk);
    most = std::max(most, bytes_of<T>(sub, strip, backward));
  }
  return most;
}

template std::size_t dense_chunk_bytes<float>(const Problem&, const LinearPlan&,
                                              int, bool);
template std::size_t dense_chunk_bytes<double>(const Problem&,
                                               const LinearPlan&, int, bool);

}  // namespace polyattn
