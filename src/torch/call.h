// One call of attention, from its arguments to the kernels: checked, parsed and
// brought to four dimensions once, and handed on as it is.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Optional.h>
#include <c10/util/string_view.h>

#include <cstdint>
#include <vector>

#include "polyattn/torch/attention.h"

namespace polyattn {

struct Call {
  at::Tensor q = {};  // [B, H, N, D]
  at::Tensor k = {};  // [B, G, M, D]
  at::Tensor v = {};  // [B, G, M, E]
  // Broadcast to [B, H, N, M], as AttentionInputs says; or undefined.
  at::Tensor mask = {};          // bool
  at::Tensor bias = {};          // floating point
  at::Tensor coefficients = {};  // [P + 1], [H, P + 1] or undefined
  at::Tensor log_decay = {};     // [B or 1, G or 1, M or 1, 1] or undefined
  // With a scale. Its dropout is what has been drawn, for the kernels.
  AttentionConfig config = {};
  double dropout = 0;                      // asked for, and not yet drawn
  std::vector<std::int64_t> leading = {};  // sizes of the output before N, E
  // Of a packed batch, as AttentionInputs has them: B is 1 then.
  std::vector<std::int64_t> q_offsets = {}, k_offsets = {};
};

// From the arguments of an op. Throws c10::Error.
AttentionOptions options_of(
    const c10::optional<at::Tensor>& attn_mask, double dropout_p,
    bool is_causal, c10::optional<double> scale, bool enable_gqa,
    c10::string_view activation, const c10::optional<at::Tensor>& coefficients,
    c10::string_view causal_alignment, c10::string_view path,
    const c10::optional<at::Tensor>& bias, at::IntArrayRef window_size,
    const c10::optional<at::Tensor>& log_decay = c10::nullopt);

// The two numbers of it; {-1, -1} is the whole sequence.
Window window_of(at::IntArrayRef window_size);
inline std::vector<std::int64_t> window_size_of(const Window& window) {
  return {window.left, window.right};
}

// Throws c10::Error.
Call make_call(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
               const AttentionOptions& options);

// The two offsets of a packed batch: i32 or i64 [B + 1], from 0 to the total.
struct PackedOffsets {
  const at::Tensor& q;
  const at::Tensor& k;
};

// varlen.cc: the same for a packed batch, q [total, H, D], k [total, G, D],
// v [total, G, E].
Call make_packed_call(const at::Tensor& q, const at::Tensor& k,
                      const at::Tensor& v, const PackedOffsets& offsets,
                      const AttentionOptions& options);

// The formula, or c10::Error with the same text as FormulaError.
Activation parse_activation(c10::string_view formula);

// The precision in which tensors of the type of t are computed with.
DType compute_type(const at::Tensor& t);

}  // namespace polyattn
