// Shapes without data: tensors on the device "meta", and tracing.
#include <ATen/ATen.h>
#include <torch/library.h>

#include "torch/layout.h"

namespace polyattn {
namespace {

using OptionalTensor = c10::optional<at::Tensor>;

std::tuple<at::Tensor, at::Tensor, at::Tensor> forward_shapes(
    const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
    const OptionalTensor& attn_mask, const OptionalTensor& coefficients,
    c10::string_view activation, double scale, std::int64_t causal,
    std::int64_t path, bool norms) {
  (void)k, (void)attn_mask, (void)coefficients, (void)activation;
  (void)scale, (void)causal, (void)path;
  return {empty_output(q, v.size(3)), empty_rows(q), empty_norms(q, norms)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> backward_shapes(
    const at::Tensor& d_o, const at::Tensor& q, const at::Tensor& k,
    const at::Tensor& v, const OptionalTensor& attn_mask,
    const OptionalTensor& coefficients, const at::Tensor& o,
    const at::Tensor& rows, c10::string_view activation, double scale,
    std::int64_t causal, std::int64_t path, std::array<bool, 4> wanted) {
  (void)d_o, (void)attn_mask, (void)o, (void)rows, (void)activation;
  (void)scale, (void)causal, (void)path;
  const auto gradients =
      empty_gradients({q, k, v}, {wanted[0], wanted[1], wanted[2]});
  return {gradients[0], gradients[1], gradients[2],
          wanted[3] ? at::empty_like(*coefficients) : at::Tensor()};
}

}  // namespace
}  // namespace polyattn

TORCH_LIBRARY_IMPL(polyattn, Meta, m) {
  m.impl("_fused_forward", polyattn::forward_shapes);
  m.impl("_fused_backward", polyattn::backward_shapes);
}
