// Between the caller's rows and the layouts of attention in linear time. Tokens
// have two sides: queries meet the gradients of their output, keys their
// values. A key that a mask removes comes as zeros.
#if defined(POLYATTN_KERNELS_LINEAR_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_LINEAR_ROWS_INL_H_
#undef POLYATTN_KERNELS_LINEAR_ROWS_INL_H_
#else
#define POLYATTN_KERNELS_LINEAR_ROWS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "core/kernels/pack-inl.h"
#include "core/kernels/tile-inl.h"
#include "core/linear_plan.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

// A head of a sequence: `query` and the key head that it uses.
struct HeadOf {
  std::int64_t b, query, key;
  Sequence seq;
};

// keep[r] = 0 where the mask removes key j + r.
inline void LoadKeep(const Problem& p, const HeadOf& head, std::int64_t j,
                     std::int64_t count, std::uint8_t* keep) {
  const ConstMask& mask = *p.in.mask;
  const std::int64_t step = mask.size[3] == 1 ? 0 : mask.stride[3];
  const std::uint8_t* from =
      mask.data +
      broadcast_offset(mask.size, mask.stride, head.b, head.query, 0, j);
  for (std::int64_t r = 0; r < count; ++r) keep[r] = from[r * step];
}

template <typename T>
class LinearRows {
 public:
  LinearRows(const Problem& p, const LinearPlan& plan,
             const LinearScratch<T>& scratch)
      : p_(p), plan_(plan), scratch_(scratch) {}

  // Rows of q (times scale) or k as columns of dst[D, ld]; the last strip is
  // filled up with zeros.
  void LoadQueries(const HeadOf& head, std::int64_t i, std::int64_t count,
                   T* dst, std::int64_t ld) const {
    LoadColumns(p_.in.q, head.seq.batch, head.query, head.seq.q_begin + i,
                count, static_cast<T>(p_.scale), nullptr, dst, ld);
  }
  void LoadKeys(const HeadOf& head, std::int64_t j, std::int64_t count, T* dst,
                std::int64_t ld) const {
    LoadColumns(p_.in.k, head.seq.batch, head.key, head.seq.k_begin + j, count,
                T{1}, Keep(head, j, count), dst, ld);
  }

  // Values of keys j .. j + count - 1, each times its fade if there are some,
  // as panels of a chunk.
  void LoadValuePanels(const HeadOf& head, std::int64_t j, std::int64_t count,
                       const T* fade = nullptr) const {
    const std::uint8_t* keep = Keep(head, j, count);
    for (std::int64_t r = 0; r < count; ++r) {
      ValueRow(head, j + r, keep == nullptr || keep[r] != 0, scratch_.rows);
      Fade(fade, r, scratch_.rows);
      ToPanels(r);
    }
  }
  // The same as columns of w.strip_d, for at most kStripTokens.
  void LoadValueColumns(const HeadOf& head, std::int64_t j, std::int64_t count,
                        const T* fade = nullptr) const {
    const std::uint8_t* keep = Keep(head, j, count);
    for (std::int64_t r = 0; r < count; ++r) {
      ValueRow(head, j + r, keep == nullptr || keep[r] != 0, BufferRow(r));
      Fade(fade, r, BufferRow(r));
    }
    ToColumns(count);
  }

  // Gradients by the sums that the output is made of, likewise. Columns leave
  // the rows in the buffer.
  void LoadGradPanels(const HeadOf& head, const AttentionBackwardInputs& in,
                      std::int64_t i, std::int64_t count,
                      const T* fade = nullptr) const {
    for (std::int64_t r = 0; r < count; ++r) {
      GradRow(head, in, i + r, scratch_.rows,
              scratch_.rows + scratch_.row_width);
      Fade(fade, r, scratch_.rows);
      ToPanels(r);
    }
  }
  void LoadGradColumns(const HeadOf& head, const AttentionBackwardInputs& in,
                       std::int64_t i, std::int64_t count,
                       const T* fade = nullptr) const {
    for (std::int64_t r = 0; r < count; ++r) {
      GradRow(head, in, i + r, BufferRow(r), scratch_.strip_o);
      Fade(fade, r, BufferRow(r));
    }
    ToColumns(count);
  }

  // The same as rows.
  void LoadKeyRows(const HeadOf& head, std::int64_t j, std::int64_t count,
                   T* dst, std::int64_t ld) const {
    const ConstTensor& k = p_.in.k;
    for (std::int64_t r = 0; r < count; ++r) {
      T* row = dst + r * ld;
      std::fill_n(row, ld, T{0});
      if (const std::uint8_t* keep = Keep(head, j + r, 1); keep && !*keep)
        continue;
      LoadRow(k.data, k.dtype,
              row_offset(k.stride, head.seq.batch, head.key,
                         head.seq.k_begin + j + r),
              p_.d, T{1}, row);
    }
  }
  void LoadValueRows(const HeadOf& head, std::int64_t j, std::int64_t count,
                     T* dst) const {
    for (std::int64_t r = 0; r < count; ++r) {
      const std::uint8_t* keep = Keep(head, j + r, 1);
      ValueRow(head, j + r, keep == nullptr || *keep != 0, scratch_.rows);
      std::copy_n(scratch_.rows, plan_.width, dst + r * plan_.width);
    }
  }
  void LoadQueryRows(const HeadOf& head, std::int64_t i, std::int64_t count,
                     T* dst, std::int64_t ld) const {
    const ConstTensor& q = p_.in.q;
    for (std::int64_t r = 0; r < count; ++r) {
      std::fill_n(dst + r * ld, ld, T{0});
      LoadRow(q.data, q.dtype,
              row_offset(q.stride, head.seq.batch, head.query,
                         head.seq.q_begin + i + r),
              p_.d, static_cast<T>(p_.scale), dst + r * ld);
    }
  }

  // o . do of row i.
  double OutputDot(const HeadOf& head, const AttentionBackwardInputs& in,
                   std::int64_t i) const {
    const std::int64_t at = head.seq.q_begin + i;
    T* x = scratch_.rows;
    T* y = BufferRow(1);
    LoadRow(in.o.data, in.o.dtype,
            row_offset(in.o.stride, head.seq.batch, head.query, at), p_.e, T{1},
            x);
    LoadRow(in.d_o.data, in.d_o.dtype,
            row_offset(in.d_o.stride, head.seq.batch, head.query, at), p_.e,
            T{1}, y);
    double dot = 0;
    for (std::int64_t c = 0; c < p_.e; ++c)
      dot += static_cast<double>(x[c]) * static_cast<double>(y[c]);
    return dot;
  }

  // src[width, kStripTokens] to `count` rows of the buffer.
  void ToRows(const T* src, std::int64_t width, std::int64_t count) const {
    const T one = 1;
    Transpose<Far::kTarget>(src, kStripTokens, width, count, &one, 0,
                            scratch_.rows, scratch_.row_width);
  }
  T* BufferRow(std::int64_t r) const {
    return scratch_.rows + r * scratch_.row_width;
  }

  // Zero where a mask removes the key; null without a mask.
  const std::uint8_t* Keep(const HeadOf& head, std::int64_t j,
                           std::int64_t count) const {
    if (!p_.in.mask) return nullptr;
    LoadKeep(p_, head, j, count, scratch_.keep);
    return scratch_.keep;
  }

 private:
  void LoadColumns(const ConstTensor& t, std::int64_t batch, std::int64_t head,
                   std::int64_t row, std::int64_t count, T scale,
                   const std::uint8_t* keep, T* dst, std::int64_t ld) const {
    const std::int64_t width = t.size[3];
    for (std::int64_t c = 0; c < count; c += kStripTokens) {
      const std::int64_t rows = std::min(kStripTokens, count - c);
      const std::int64_t index = row_offset(t.stride, batch, head, row + c);
      if (t.dtype == kDTypeOf<T> && rows == kStripTokens && keep == nullptr) {
        Transpose<Far::kSource>(static_cast<const T*>(t.data) + index,
                                t.stride[2], rows, width, &scale, 0, dst + c,
                                ld);
        continue;
      }
      for (std::int64_t r = 0; r < kStripTokens; ++r) {
        if (r < rows && (keep == nullptr || keep[c + r] != 0)) {
          LoadRow(t.data, t.dtype, index + r * t.stride[2], width, T{1},
                  BufferRow(r));
        } else {
          std::fill_n(BufferRow(r), width, T{0});
        }
      }
      Transpose<Far::kSource>(scratch_.rows, scratch_.row_width, kStripTokens,
                              width, &scale, 0, dst + c, ld);
    }
  }

  void ValueRow(const HeadOf& head, std::int64_t j, bool seen, T* row) const {
    const ConstTensor& v = p_.in.v;
    std::fill_n(row, plan_.panels() * kStrip<T>, T{0});
    if (!seen) return;
    LoadRow(
        v.data, v.dtype,
        row_offset(v.stride, head.seq.batch, head.key, head.seq.k_begin + j),
        p_.e, T{1}, row);
    if (plan_.columns > p_.e) row[p_.e] = 1;
  }

  // d_o times the row's scale, and for `sum` what it subtracts from all.
  void GradRow(const HeadOf& head, const AttentionBackwardInputs& in,
               std::int64_t i, T* row, T* other) const {
    const RowState& state =
        in.rows[static_cast<std::size_t>(p_.row_index(head.b, head.query, i))];
    const std::int64_t at = head.seq.q_begin + i;
    const auto load = [&](const ConstTensor& t, T* to) {
      LoadRow(t.data, t.dtype,
              row_offset(t.stride, head.seq.batch, head.query, at), p_.e, T{1},
              to);
    };
    std::fill_n(row, plan_.panels() * kStrip<T>, T{0});
    load(in.d_o, row);
    const T scale = static_cast<T>(state.scale);
    if (plan_.columns > p_.e) {
      load(in.o, other);
      T dot = 0;
      for (std::int64_t c = 0; c < p_.e; ++c) dot += row[c] * other[c];
      row[p_.e] = -static_cast<T>(plan_.sum_sign) * dot;
    }
    for (std::int64_t c = 0; c < plan_.columns; ++c) row[c] *= scale;
  }

  // Row r of what is loaded. A fade of 0 leaves nothing, whatever the row.
  void Fade(const T* fade, std::int64_t r, T* row) const {
    if (fade == nullptr) return;
    if (fade[r] == 0) std::fill_n(row, plan_.columns, T{0});
    for (std::int64_t c = 0; c < plan_.columns; ++c) row[c] *= fade[r];
  }

  // The first row of the buffer to row r of all panels.
  void ToPanels(std::int64_t r) const {
    for (std::int64_t c = 0; c < plan_.columns; c += kStrip<T>)
      std::copy_n(scratch_.rows + c, kStrip<T>,
                  scratch_.panels + c * plan_.chunk + r * kStrip<T>);
  }

  void ToColumns(std::int64_t count) const {
    for (std::int64_t r = count; r < kStripTokens; ++r)
      std::fill_n(BufferRow(r), plan_.columns, T{0});
    const T one = 1;
    Transpose<Far::kSource>(scratch_.rows, scratch_.row_width, kStripTokens,
                            plan_.columns, &one, 0, scratch_.strip_d,
                            kStripTokens);
  }

  const Problem& p_;
  const LinearPlan& plan_;
  const LinearScratch<T>& scratch_;
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#endif
