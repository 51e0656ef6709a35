// Panels: the layouts in which the tiles find queries, keys, bias and output.
// A panel [rows, kStrip] holds a query in each lane.
#if defined(POLYATTN_KERNELS_PANELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_PANELS_INL_H_
#undef POLYATTN_KERNELS_PANELS_INL_H_
#else
#define POLYATTN_KERNELS_PANELS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "core/kernels/pack-inl.h"
#include "core/kernels/tile-inl.h"
#include "core/plan.h"
#include "core/visibility.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

// Consecutive rows of a tensor, the first at `index`.
struct RowSource {
  const ConstTensor* tensor;
  std::int64_t index;
};
struct RowTarget {
  const Tensor* tensor;
  std::int64_t index;
};

// Rows where they lie: row r begins at data + r * ld.
template <typename T>
struct RowsView {
  const T* data;
  std::int64_t ld;
};

// Room for a strip of rows on their way in or out: [kStrip, ld].
template <typename T>
struct RowBuffer {
  T* data;
  std::int64_t ld;
};

// `rows` <= kStrip rows of `width` elements, times scale, as the columns of
// dst[width, kStrip], in one vector if they fit; those that are left over in it
// are zero.
template <typename T>
HWY_INLINE void PackColumns(const RowSource& src, std::int64_t rows,
                            std::int64_t width, T scale,
                            const RowBuffer<T>& buffer, T* dst) {
  const std::int64_t ld = src.tensor->stride[2];
  const std::int64_t lanes = rows <= kLanes<T> ? kLanes<T> : kStrip<T>;
  if (src.tensor->dtype == kDTypeOf<T> && rows == lanes) {
    const T* from = static_cast<const T*>(src.tensor->data) + src.index;
    return Transpose<Far::kSource>(from, ld, rows, width, &scale, 0, dst,
                                   kStrip<T>);
  }
  for (std::int64_t r = 0; r < lanes; ++r) {
    T* row = buffer.data + r * buffer.ld;
    if (r < rows) {
      LoadRow(src.tensor->data, src.tensor->dtype, src.index + r * ld, width,
              T{1}, row);
    } else {
      std::fill_n(row, width, T{0});
    }
  }
  Transpose<Far::kSource>(buffer.data, buffer.ld, lanes, width, &scale, 0, dst,
                          kStrip<T>);
}

// The reverse: the first `rows` columns of src[width, kStrip], each times its
// own scale, to rows of the target. With `count`, returns how many of the
// values written are inf or NaN.
template <typename T>
HWY_INLINE std::int64_t UnpackColumns(const T* src, std::int64_t width,
                                      std::int64_t rows, const T* scale,
                                      const RowBuffer<T>& buffer,
                                      const RowTarget& dst, bool count) {
  const Tensor& t = *dst.tensor;
  if (t.dtype == kDTypeOf<T> && !count) {
    T* to = static_cast<T*>(t.data) + dst.index;
    Transpose<Far::kTarget>(src, kStrip<T>, width, rows, scale, 1, to,
                            t.stride[2]);
    return 0;
  }
  const T one = 1;
  Transpose<Far::kTarget>(src, kStrip<T>, width, rows, &one, 0, buffer.data,
                          buffer.ld);
  std::int64_t bad = 0;
  for (std::int64_t r = 0; r < rows; ++r)
    bad += StoreRow(buffer.data + r * buffer.ld, width, scale[r], t.data,
                    t.dtype, dst.index + r * t.stride[2]);
  return bad;
}

// A row of `width` elements, times scale, into panels [rows, kStrip], in each
// of which it is the row that `panels` points to.
template <typename T>
HWY_INLINE void PackPanels(const RowSource& src, std::int64_t width, T scale,
                           std::int64_t rows, T* panels) {
  const ConstTensor& t = *src.tensor;
  const Tag<T> d;
  for (std::int64_t c = 0; c < width; c += kStrip<T>) {
    T* to = panels + c * rows;
    if (t.dtype == kDTypeOf<T> && width - c >= kStrip<T>) {
      const T* from = static_cast<const T*>(t.data) + src.index + c;
      POLYATTN_UNROLL
      for (int v = 0; v < kStripVectors; ++v)
        hn::Store(
            hn::Mul(hn::LoadU(d, from + v * kLanes<T>), hn::Set(d, scale)), d,
            to + v * kLanes<T>);
      continue;
    }
    const std::int64_t count = std::min<std::int64_t>(kStrip<T>, width - c);
    LoadRow(t.data, t.dtype, src.index + c, count, scale, to);
    std::fill(to + count, to + kStrip<T>, T{0});
  }
}

// `count` rows of k or v, from key j of the sequence on: where they lie, or
// brought together in `copy`, with zeros up to whole vectors.
template <typename T>
HWY_INLINE RowsView<T> KeyRows(const ConstTensor& t, const Sequence& seq,
                               std::int64_t head, std::int64_t j,
                               std::int64_t count, bool needs_copy, T* copy) {
  const std::int64_t index =
      row_offset(t.stride, seq.batch, head, seq.k_begin + j);
  if (!needs_copy) return {static_cast<const T*>(t.data) + index, t.stride[2]};
  const std::int64_t ld = spread_width<T>(t.size[3]);
  const std::int64_t width = t.size[3];
  for (std::int64_t r = 0; r < count; ++r, copy += ld) {
    LoadRow(t.data, t.dtype, index + r * t.stride[2], width, T{1}, copy);
    std::fill_n(copy + width, (kLanes<T> - width % kLanes<T>) % kLanes<T>,
                T{0});
  }
  return {copy - count * ld, ld};
}

// Bias and mask of a block of at most kStrip queries, as dst[cols, kStrip].
template <typename T>
HWY_INLINE void FillBiasPanel(const Problem& p, const ScoreBlock& block,
                              const RowBuffer<T>& buffer, T* dst) {
  const Tag<T> d;
  if (rows_share_keys(p)) {
    ScoreBlock first = block;
    first.rows = 1;
    fill_bias_rows(p, first, buffer.data, buffer.ld);
    for (std::int64_t c = 0; c < block.cols; ++c) {
      const auto x = hn::Set(d, buffer.data[c]);
      POLYATTN_UNROLL
      for (int v = 0; v < kStripVectors; ++v)
        hn::Store(x, d, dst + c * kStrip<T> + v * kLanes<T>);
    }
    return;
  }
  fill_bias_rows(p, block, buffer.data, buffer.ld);
  for (std::int64_t r = block.rows; r < kStrip<T>; ++r)
    std::fill_n(buffer.data + r * buffer.ld, block.cols, T{0});
  const T one = 1;
  Transpose<Far::kSource>(buffer.data, buffer.ld, kStrip<T>, block.cols, &one,
                          0, dst, kStrip<T>);
}

// Panel number `index` of those that are made once for the call.
template <typename T>
HWY_INLINE void FillSharedPanel(const Problem& p, const PanelStorage<T>& panels,
                                std::int64_t index,
                                const RowBuffer<T>& buffer) {
  const SharedPanels& plan = panels.plan;
  const std::int64_t i = index % plan.strips * kStrip<T>;
  const std::int64_t head = index / plan.strips;
  ScoreBlock block{.b = head / plan.heads,
                   .h = head % plan.heads,
                   .i = i,
                   .rows = std::min<std::int64_t>(kStrip<T>, p.n - i),
                   .j = 0,
                   .cols = 0};
  T* panel = panels.data + index * panels.size;
  for (; block.j < plan.keys; block.j += buffer.ld) {
    block.cols = std::min(buffer.ld, plan.keys - block.j);
    FillBiasPanel<T>(p, block, buffer, panel + block.j * kStrip<T>);
  }
}

// All of them; Storage is that of forward or of backward.
template <typename Storage>
void FillSharedPanels(const Problem& p, const Storage& storage,
                      Parallel& parallel) {
  parallel.run(storage.panels.plan.count(), [&](std::int64_t i, int worker) {
    const auto scratch = storage.rooms.of(worker);
    FillSharedPanel(p, storage.panels, i, {scratch.rows, scratch.row_width});
  });
}

// panel[r, lane] *= factor[lane].
template <typename T>
HWY_INLINE void ScaleLanes(T* panel, std::int64_t rows, const T* factor) {
  const Tag<T> d;
  for (std::int64_t r = 0; r < rows; ++r) {
    POLYATTN_UNROLL
    for (int v = 0; v < kStripVectors; ++v) {
      T* p = panel + r * kStrip<T> + v * kLanes<T>;
      hn::Store(hn::Mul(hn::Load(d, p), hn::Load(d, factor + v * kLanes<T>)), d,
                p);
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#endif
