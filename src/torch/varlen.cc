// Packed batches: sequences of different lengths, one behind the other.
#include <ATen/ATen.h>
#include <torch/library.h>

#include "torch/call.h"
#include "torch/fused.h"

namespace polyattn {
namespace {

std::vector<std::int64_t> offsets_of(const char* name, const at::Tensor& t,
                                     std::int64_t rows) {
  TORCH_CHECK(t.dim() == 1 && t.numel() >= 2 &&
                  (t.scalar_type() == at::kInt || t.scalar_type() == at::kLong),
              "[attention_varlen] ", name, " of size ", t.sizes(), " and type ",
              t.scalar_type(), " is not i32 or i64 [B + 1]");
  const at::Tensor values = t.to(at::kCPU, at::kLong).contiguous();
  const auto* first = values.data_ptr<std::int64_t>();
  std::vector<std::int64_t> offsets(first, first + values.numel());
  TORCH_CHECK(offsets.front() == 0, "[attention_varlen] ", name,
              " begins with ", offsets.front(), ", not 0");
  for (std::size_t b = 1; b < offsets.size(); ++b) {
    TORCH_CHECK(offsets[b] >= offsets[b - 1], "[attention_varlen] ", name, "[",
                b, "] ", offsets[b], " < ", offsets[b - 1], " before it");
  }
  TORCH_CHECK(offsets.back() == rows, "[attention_varlen] ", name, " ends at ",
              offsets.back(), ", but there are ", rows, " rows");
  return offsets;
}

// [total, H, D] as [1, H, total, D].
at::Tensor one_batch(const char* name, const at::Tensor& t) {
  TORCH_CHECK(t.dim() == 3, "[attention_varlen] ", name, " of size ", t.sizes(),
              " is not [total, heads, width]");
  return t.transpose(0, 1).unsqueeze(0);
}

at::Tensor attention_varlen(const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, const at::Tensor& cu_seqlens_q,
                            const at::Tensor& cu_seqlens_k, bool is_causal,
                            c10::optional<double> scale,
                            c10::string_view activation,
                            const c10::optional<at::Tensor>& coefficients,
                            c10::string_view causal_alignment,
                            c10::string_view path,
                            at::IntArrayRef window_size) {
  const Call call = make_packed_call(
      q, k, v, {cu_seqlens_q, cu_seqlens_k},
      options_of({}, 0, is_causal, scale, /*enable_gqa=*/true, activation,
                 coefficients, causal_alignment, path, {}, window_size));
  return evaluate(call, false).o.squeeze(0).transpose(0, 1);
}

}  // namespace

Call make_packed_call(const at::Tensor& q, const at::Tensor& k,
                      const at::Tensor& v, const PackedOffsets& offsets,
                      const AttentionOptions& options) {
  const at::Tensor rows_q = one_batch("query", q), rows_k = one_batch("key", k),
                   rows_v = one_batch("value", v);
  Call call = make_call(rows_q, rows_k, rows_v, options);
  call.q_offsets = offsets_of("cu_seqlens_q", offsets.q, q.size(0));
  call.k_offsets = offsets_of("cu_seqlens_k", offsets.k, k.size(0));
  TORCH_CHECK(call.q_offsets.size() == call.k_offsets.size(),
              "[attention_varlen] cu_seqlens_q is for ",
              call.q_offsets.size() - 1, " sequences, cu_seqlens_k for ",
              call.k_offsets.size() - 1);
  return call;
}

}  // namespace polyattn

TORCH_LIBRARY_IMPL(polyattn, CompositeImplicitAutograd, m) {
  m.impl("attention_varlen", polyattn::attention_varlen);
}
