#include "torch/parts.h"

#include <ATen/ATen.h>

#include <cmath>

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

// Of a mask or bias.
at::Tensor own_heads(const at::Tensor& t, std::int64_t first,
                     std::int64_t count) {
  return !t.defined() || t.size(1) == 1 ? t : t.narrow(1, first, count);
}

// Of log_decay.
at::Tensor key_heads_of(const at::Tensor& t, std::int64_t first,
                        std::int64_t count, std::int64_t group) {
  if (!t.defined() || t.size(1) == 1) return t;
  return heads_of(t, first, count, group);
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
  AttentionInputs in{.q = view_of(call.q),
                     .k = view_of(call.k),
                     .v = view_of(call.v),
                     .q_offsets = call.q_offsets,
                     .k_offsets = call.k_offsets};
  if (call.bias.defined()) in.bias = view_of(call.bias);
  if (call.log_decay.defined()) in.log_decay = view_of(call.log_decay);
  if (const at::Tensor& mask = call.mask; mask.defined()) {
    in.mask = ConstMask{static_cast<const std::uint8_t*>(mask.data_ptr()),
                        extents(mask.sizes()), extents(mask.strides())};
  }
  return in;
}

std::span<RowState> Part::rows(const at::Tensor& all) const {
  const std::int64_t each = call.q.size(0) * call.q.size(2);
  return {static_cast<RowState*>(all.data_ptr()) + first * each,
          static_cast<std::size_t>(count * each)};
}

std::vector<Part> parts_of(const Call& call) {
  const std::int64_t heads = call.q.size(1);
  const at::Tensor& c = call.coefficients;
  const bool by_head = c.defined() && c.dim() == 2;
  const std::int64_t count = by_head ? 1 : heads;
  const std::int64_t group = call.k.size(1) == 0 ? 1 : heads / call.k.size(1);
  std::vector<Part> parts;
  for (std::int64_t h = 0; h < heads; h += count) {
    Part part{{.q = with_dense_rows(heads_of(call.q, h, count, 1)),
               .k = with_dense_rows(heads_of(call.k, h, count, group)),
               .v = with_dense_rows(heads_of(call.v, h, count, group)),
               .mask = own_heads(call.mask, h, count),
               .bias = own_heads(call.bias, h, count),
               .log_decay = key_heads_of(call.log_decay, h, count, group),
               .config = call.config,
               .q_offsets = call.q_offsets,
               .k_offsets = call.k_offsets},
              h,
              count,
              group};
    part.call.config.dropout.first_head = h;
    if (c.defined()) {
      Activation& own = part.call.config.activation;
      own = with_coefficients(own, by_head ? c[h] : c);
    }
    parts.push_back(part);
  }
  return parts;
}

}  // namespace polyattn
