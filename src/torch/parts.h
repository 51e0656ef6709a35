// Views of torch tensors for the core, and the parts into which a call falls
// where each head has coefficients of its own.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "polyattn/attention.h"

namespace polyattn {

// [B, H, N, D], of a type that the kernels know.
Tensor view_of(const at::Tensor& t);

// Kernels read whole rows.
at::Tensor with_dense_rows(const at::Tensor& t);

// Of a tensor whose heads serve `group` query heads each, those that serve the
// query heads [first, first + count).
at::Tensor heads_of(const at::Tensor& t, std::int64_t first, std::int64_t count,
                    std::int64_t group);

// The call for a range of heads that share one activation: all of them, or a
// single one where each has coefficients of its own.
struct Part {
  at::Tensor q, k, v;
  at::Tensor attn_mask;
  AttentionConfig config;
  std::int64_t first = 0, count = 0, group = 1;

  AttentionInputs inputs() const;

  // The states of this part's rows, out of the tensor that holds all of them:
  // by part, then as the core has them, which is [B, H, N] for a single part.
  std::span<RowState> rows(const at::Tensor& all) const;
};

// What all parts have in common; tensors as in FusedCall.
struct PartsCall {
  at::Tensor q, k, v;
  at::Tensor attn_mask;
  at::Tensor coefficients;
  AttentionConfig config;
};

std::vector<Part> parts_of(const PartsCall& call);

}  // namespace polyattn
