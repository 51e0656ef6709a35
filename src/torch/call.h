// A call of attention after its arguments were checked and brought to four
// dimensions.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "polyattn/torch/attention.h"

namespace polyattn {

struct Call {
  at::Tensor q;          // [B, H, N, D]
  at::Tensor k;          // [B, G, M, D]
  at::Tensor v;          // [B, G, M, E]
  at::Tensor attn_mask;  // broadcasts to [B, H, N, M]; bool or floating point
  at::Tensor coefficients;  // [P + 1], [H, P + 1] or undefined
  Activation activation;
  double scale = 1;
  Causal causal = Causal::kNone;
  double dropout = 0;
  Path path = Path::kAuto;
  std::vector<std::int64_t> leading;  // sizes of the output before N and E
};

// Throws c10::Error.
Call make_call(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
               const AttentionOptions& options);

// The formula, or c10::Error with the same text as FormulaError.
Activation parse_activation(c10::string_view formula);

bool is_bias(const at::Tensor& attn_mask);

}  // namespace polyattn
