#include "torch/parts.h"

#include <ATen/ATen.h>

#include <cmath>

#include "torch/call.h"

namespace polyattn {
namespace {

static_assert(sizeof(RowState) == 2 * sizeof(double));

DType dtype_of(const at::Tensor& t) {
  switch (t.scalar_type()) {
    case at::kFloat:
      return DType::kF32;
    case at::kDouble:
      return DType::kF64;
    case at::kBFloat16:
      return DType::kBF16;
    case at::kHalf:
      return DType::kF16;
    default:
      TORCH_CHECK(false, "[attention] no kernel for type ", t.scalar_type());
  }
}

Extents extents(at::IntArrayRef values) {
  return {values[0], values[1], values[2], values[3]};
}

at::Tensor mask_heads(const at::Tensor& mask, std::int64_t first,
                      std::int64_t count) {
  return !mask.defined() || mask.size(1) == 1 ? mask
                                              : mask.narrow(1, first, count);
}

Activation with_coefficients(Activation activation, const at::Tensor& c) {
  const at::Tensor values = c.to(at::kDouble).contiguous();
  activation.degree = static_cast<int>(values.numel()) - 1;
  activation.coefficient.fill(0);
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    const double value = values.data_ptr<double>()[i];
    TORCH_CHECK(std::isfinite(value), "[attention] coefficient ", value,
                " of x^", i, " is not finite");
    activation.coefficient[static_cast<std::size_t>(i)] = value;
  }
  return activation;
}

}  // namespace

Tensor view_of(const at::Tensor& t) {
  return {t.data_ptr(), dtype_of(t), extents(t.sizes()), extents(t.strides())};
}

at::Tensor with_dense_rows(const at::Tensor& t) {
  if (t.stride(3) == 1 || t.size(3) <= 1) return t;
  // An empty tensor calls itself contiguous whatever its strides are.
  return t.numel() == 0 ? at::empty(t.sizes(), t.options()) : t.contiguous();
}

at::Tensor heads_of(const at::Tensor& t, std::int64_t first, std::int64_t count,
                    std::int64_t group) {
  return t.narrow(1, first / group, (count + group - 1) / group);
}

AttentionInputs Part::inputs() const {
  AttentionInputs in{.q = view_of(q), .k = view_of(k), .v = view_of(v)};
  if (is_bias(attn_mask)) {
    in.bias = view_of(attn_mask);
  } else if (attn_mask.defined()) {
    in.mask =
        ConstMask{static_cast<const std::uint8_t*>(attn_mask.data_ptr()),
                  extents(attn_mask.sizes()), extents(attn_mask.strides())};
  }
  return in;
}

std::span<RowState> Part::rows(const at::Tensor& all) const {
  const std::int64_t each = q.size(0) * q.size(2);
  return {static_cast<RowState*>(all.data_ptr()) + first * each,
          static_cast<std::size_t>(count * each)};
}

std::vector<Part> parts_of(const PartsCall& call) {
  const std::int64_t heads = call.q.size(1);
  const bool by_head =
      call.coefficients.defined() && call.coefficients.dim() == 2;
  const std::int64_t count = by_head ? 1 : heads;
  const std::int64_t group = call.k.size(1) == 0 ? 1 : heads / call.k.size(1);
  std::vector<Part> parts;
  for (std::int64_t h = 0; h < heads; h += count) {
    Part part{with_dense_rows(heads_of(call.q, h, count, 1)),
              with_dense_rows(heads_of(call.k, h, count, group)),
              with_dense_rows(heads_of(call.v, h, count, group)),
              mask_heads(call.attn_mask, h, count),
              call.config,
              h,
              count,
              group};
    if (call.coefficients.defined()) {
      part.config.activation =
          with_coefficients(call.config.activation,
                            by_head ? call.coefficients[h] : call.coefficients);
    }
    parts.push_back(part);
  }
  return parts;
}

}  // namespace polyattn
