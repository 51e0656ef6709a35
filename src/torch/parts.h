// Views of torch tensors for the core, and the parts into which a call falls
// where each head has coefficients of its own.
#pragma once

#include <span>
#include <vector>

#include "torch/call.h"

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
// single one where each has coefficients of its own. They are in the
// activation.
struct Part {
  Call call;
  std::int64_t first = 0, count = 0, group = 1;

  AttentionInputs inputs() const;

  // The states of this part's rows, out of the tensor that holds all of them:
  // by part, then as the core has them, which is [B, H, N] for a single part.
  std::span<RowState> rows(const at::Tensor& all) const;
};

std::vector<Part> parts_of(const Call& call);

}  // namespace polyattn
