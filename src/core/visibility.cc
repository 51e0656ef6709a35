#include "core/visibility.h"

#include <algorithm>
#include <limits>

namespace polyattn {
namespace {

template <typename S, typename T>
void copy_bias(const S* src, std::int64_t stride, std::int64_t cols, T* dst) {
  if (stride == 1) {
    for (std::int64_t c = 0; c < cols; ++c) dst[c] = static_cast<T>(src[c]);
  } else {
    for (std::int64_t c = 0; c < cols; ++c)
      dst[c] = static_cast<T>(src[c * stride]);
  }
}

template <typename T>
void bias_row(const ConstTensor& bias, std::int64_t offset, std::int64_t cols,
              T* dst) {
  const std::int64_t stride = bias.size[3] == 1 ? 0 : bias.stride[3];
  switch (bias.dtype) {
    case DType::kF32:
      return copy_bias(static_cast<const float*>(bias.data) + offset, stride,
                       cols, dst);
    case DType::kF64:
      return copy_bias(static_cast<const double*>(bias.data) + offset, stride,
                       cols, dst);
    case DType::kBF16:
    case DType::kF16:
      for (std::int64_t c = 0; c < cols; ++c)
        dst[c] = static_cast<T>(
            load_element(bias.data, bias.dtype, offset + c * stride));
  }
}

template <typename T>
void mask_row(const ConstMask& mask, std::int64_t offset, std::int64_t cols,
              T* dst) {
  constexpr T kGone = -std::numeric_limits<T>::infinity();
  const std::uint8_t* src = mask.data + offset;
  const std::int64_t stride = mask.size[3] == 1 ? 0 : mask.stride[3];
  if (stride == 1) {
    for (std::int64_t c = 0; c < cols; ++c)
      dst[c] = src[c] != 0 ? dst[c] : kGone;
  } else {
    for (std::int64_t c = 0; c < cols; ++c)
      dst[c] = src[c * stride] != 0 ? dst[c] : kGone;
  }
}

}  // namespace

template <typename T>
void fill_bias_rows(const Problem& problem, const ScoreBlock& block, T* dst,
                    std::int64_t ld) {
  const Sequence s = problem.sequence(block.b);
  const auto& in = problem.in;
  for (std::int64_t r = 0; r < block.rows; ++r, dst += ld) {
    const std::int64_t i = block.i + r;
    if (in.bias) {
      bias_row(*in.bias,
               broadcast_offset(in.bias->size, in.bias->stride, block.b,
                                block.h, i, block.j),
               block.cols, dst);
    } else {
      std::fill_n(dst, block.cols, T{0});
    }
    if (in.mask) {
      mask_row(*in.mask,
               broadcast_offset(in.mask->size, in.mask->stride, block.b,
                                block.h, i, block.j),
               block.cols, dst);
    }
    constexpr T kGone = -std::numeric_limits<T>::infinity();
    const KeyRange seen =
        KeyRange{block.j, block.j + block.cols}.within(problem.keys_of(s, i));
    std::fill_n(dst, std::min(seen.begin - block.j, block.cols), kGone);
    std::fill(dst + std::min(seen.end - block.j, block.cols), dst + block.cols,
              kGone);
  }
}

template <typename T>
void count_keys(const Problem& problem, const ScoreBlock& rows, T* buffer,
                std::int64_t chunk, double* counts) {
  const bool shared = rows_share_keys(problem);
  for (std::int64_t r = 0; r < rows.rows; ++r) {
    if (shared && r > 0) {
      counts[r] = counts[0];
      continue;
    }
    std::int64_t seen = 0;
    for (std::int64_t c = 0; c < rows.cols; c += chunk) {
      const std::int64_t cols = std::min(chunk, rows.cols - c);
      fill_bias_rows(problem, {rows.b, rows.h, rows.i + r, 1, rows.j + c, cols},
                     buffer, chunk);
      seen += std::count_if(buffer, buffer + cols, [](T x) {
        return x != -std::numeric_limits<T>::infinity();
      });
    }
    counts[r] = static_cast<double>(seen);
  }
}

bool rows_share_mask(const Problem& problem) {
  const auto shared = [](const auto& view) {
    return !view || view->size[2] == 1 ||
           (view->stride[2] == 0 && view->size[2] > 0);
  };
  return shared(problem.in.bias) && shared(problem.in.mask);
}

bool rows_share_keys(const Problem& problem) {
  return problem.causal == Causal::kNone && !problem.windowed() &&
         rows_share_mask(problem);
}

template void fill_bias_rows<float>(const Problem&, const ScoreBlock&, float*,
                                    std::int64_t);
template void fill_bias_rows<double>(const Problem&, const ScoreBlock&, double*,
                                     std::int64_t);
template void count_keys<float>(const Problem&, const ScoreBlock&, float*,
                                std::int64_t, double*);
template void count_keys<double>(const Problem&, const ScoreBlock&, double*,
                                 std::int64_t, double*);

}  // namespace polyattn
