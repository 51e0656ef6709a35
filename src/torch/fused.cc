#include "torch/fused.h"

#include "torch/find_op.h"

namespace polyattn {
namespace {

using OptionalTensor = c10::optional<at::Tensor>;

using ForwardSignature = std::tuple<at::Tensor, at::Tensor, at::Tensor>(
    const at::Tensor&, const at::Tensor&, const at::Tensor&,
    const OptionalTensor&, const OptionalTensor&, c10::string_view, double,
    std::int64_t, std::int64_t, bool);
using BackwardSignature =
    std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>(
        const at::Tensor&, const at::Tensor&, const at::Tensor&,
        const at::Tensor&, const OptionalTensor&, const OptionalTensor&,
        const at::Tensor&, const at::Tensor&, c10::string_view, double,
        std::int64_t, std::int64_t, std::array<bool, 4>);

}  // namespace

FusedResults fused_forward(const FusedCall& call, bool norms) {
  static const auto op = find_op<ForwardSignature>("polyattn::_fused_forward");
  auto [o, rows, statistics] =
      op.call(call.q, call.k, call.v, if_defined(call.attn_mask),
              if_defined(call.coefficients), call.activation, call.scale,
              call.causal, call.path, norms);
  return {o, rows, statistics};
}

FusedGradients fused_backward(const FusedCall& call, const at::Tensor& d_o,
                              const at::Tensor& o, const at::Tensor& rows,
                              std::array<bool, 4> wanted) {
  static const auto op =
      find_op<BackwardSignature>("polyattn::_fused_backward");
  auto [dq, dk, dv, dc] =
      op.call(d_o, call.q, call.k, call.v, if_defined(call.attn_mask),
              if_defined(call.coefficients), o, rows, call.activation,
              call.scale, call.causal, call.path, wanted);
  return {dq, dk, dv, dc};
}

}  // namespace polyattn
