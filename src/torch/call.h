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
  at::Tensor q;                 // [B, H, N, D]
  at::Tensor k;                 // [B, G, M, D]
  at::Tensor v;                 // [B, G, M, E]
  at::Tensor attn_mask;         // broadcasts to [B, H, N, M], or undefined
  at::Tensor coefficients;      // [P + 1], [H, P + 1] or undefined
  AttentionConfig config = {};  // with a scale
  double dropout = 0;
  std::vector<std::int64_t> leading = {};  // sizes of the output before N, E
};

// Throws c10::Error.
Call make_call(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
               const AttentionOptions& options);

// The formula, or c10::Error with the same text as FormulaError.
Activation parse_activation(c10::string_view formula);

// The precision in which tensors of the type of t are computed with.
DType compute_type(const at::Tensor& t);

bool is_bias(const at::Tensor& attn_mask);

}  // namespace polyattn
