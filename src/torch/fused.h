// The two ops on which the public ones rest on the CPU, as C++ functions that
// go through torch's dispatcher. Tensors that are absent are undefined.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Optional.h>

#include <array>
#include <string>

#include "polyattn/torch/attention.h"

namespace polyattn {

inline c10::optional<at::Tensor> if_defined(const at::Tensor& t) {
  return t.defined() ? c10::optional<at::Tensor>(t) : c10::nullopt;
}

// What forward and backward have in common; the members are those of Call.
struct FusedCall {
  at::Tensor q, k, v;
  at::Tensor attn_mask;
  at::Tensor coefficients;
  std::string activation;
  double scale = 1;
  std::int64_t causal = 0;  // of enum Causal
  std::int64_t path = 0;    // of enum Path
};

struct FusedResults {
  at::Tensor o;      // [B, H, N, E]
  at::Tensor rows;   // RowState of each row, for backward alone
  at::Tensor norms;  // [B, H, 4] f64: the members of AttentionStats; or empty
};

FusedResults fused_forward(const FusedCall& call, bool norms);

// Gradients of q, k, v and the coefficients; undefined where not wanted.
using FusedGradients = std::array<at::Tensor, 4>;

FusedGradients fused_backward(const FusedCall& call, const at::Tensor& d_o,
                              const at::Tensor& o, const at::Tensor& rows,
                              std::array<bool, 4> wanted);

}  // namespace polyattn
