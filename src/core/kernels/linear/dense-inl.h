// What is dense in causal attention in linear time: a chunk of queries with the
// keys of the same chunk, by the dense kernels.
#if defined(POLYATTN_KERNELS_LINEAR_DENSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_LINEAR_DENSE_INL_H_
#undef POLYATTN_KERNELS_LINEAR_DENSE_INL_H_
#else
#define POLYATTN_KERNELS_LINEAR_DENSE_INL_H_
#endif

#include <cstdint>

#include "core/kernels/kernels.h"
#include "core/kernels/linear/call-inl.h"
#include "core/linear_dense.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

// A chunk of a pair on its time line: queries q0 .. q1 - 1, keys k0 .. k1 - 1.
struct Chunk {
  std::int64_t q0, q1, k0, k1;
  std::int64_t lead;  // time from its beginning to the first query
  bool last;          // of the sequence

  Chunk(const TimeLine& line, std::int64_t begin, std::int64_t length)
      : q0(line.first_query(begin)),
        q1(line.first_query(begin + length)),
        k0(line.first_key(begin)),
        k1(line.first_key(begin + length)),
        lead(q0 + line.shift - begin),
        last(begin + length >= line.length) {}
  std::int64_t queries() const { return q1 - q0; }
  std::int64_t keys() const { return k1 - k0; }
};

// Sums of the chunk's own keys: a[queries, E], and the row states, from which
// `sum` gets the sum of the absolute weights.
template <typename T>
void DenseForward(const LinearCall<T>& call, const HeadOf& head,
                  const Chunk& chunk, const ChunkScratch<T>& w) {
  const Problem sub =
      chunk_problem(call.p, {head.seq, head.b, head.query, 1, head.key},
                    {chunk.q0, chunk.q1, chunk.k0, chunk.k1}, true);
  const Extents size = {1, 1, chunk.queries(), call.p.e};
  const AttentionResults results = {
      .o = view(w.a, kDTypeOf<T>, size),
      .rows = {w.row_states, static_cast<std::size_t>(chunk.queries())}};
  SerialParallel serial;
  dense_forward<T>(sub, results, w.dense, serial);
}

// Gradients of the chunk's own part, of `members` heads from head.query on.
template <typename T>
void DenseBackward(const LinearCall<T>& call, const HeadOf& head,
                   std::int64_t members, const Chunk& chunk,
                   const ChunkScratch<T>& w, const AttentionGradients& out) {
  const Problem& p = call.p;
  const Problem sub =
      chunk_problem(p, {head.seq, head.b, head.query, members, head.key},
                    {chunk.q0, chunk.q1, chunk.k0, chunk.k1}, false);
  const auto count = static_cast<std::size_t>(chunk.queries());
  for (std::int64_t m = 0; m < members; ++m) {
    const auto from =
        static_cast<std::size_t>(p.row_index(head.b, head.query + m, chunk.q0));
    for (std::size_t r = 0; r < count; ++r)
      w.row_states[static_cast<std::size_t>(m) * count + r] =
          call.back->rows[from + r];
  }
  const auto slice = [&](const ConstTensor& t) {
    return slice_rows(t, head.seq.batch, {head.query, members},
                      {head.seq.q_begin + chunk.q0, chunk.queries()});
  };
  const AttentionBackwardInputs in = {
      .d_o = slice(call.back->d_o),
      .o = p.activation.divisor == Divisor::kSum ? slice(call.back->o)
                                                 : ConstTensor{},
      .rows = {w.row_states, count * static_cast<std::size_t>(members)}};
  SerialParallel serial;
  dense_backward<T>(sub, in, out, w.dense, serial);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#endif
