#include "torch/fused.h"
#include "torch/layout.h"

namespace polyattn {

FusedResults forward_shapes(const Call& call, bool norms) {
  return {empty_output(call.q, call.v.size(3)), empty_rows(call.q),
          empty_norms(call.q, norms)};
}

FusedGradients backward_shapes(const Call& call, const FusedOutputs&,
                               Wanted wanted) {
  const auto [dq, dk, dv] = empty_gradients({call.q, call.k, call.v},
                                            {wanted[0], wanted[1], wanted[2]});
  return {dq,
          dk,
          dv,
          wanted[3] ? at::empty_like(call.coefficients) : at::Tensor(),
          wanted[4] ? at::empty(call.bias.sizes(), call.bias.options())
                    : at::Tensor(),
          wanted[5]
              ? at::empty(call.log_decay.sizes(), call.log_decay.options())
              : at::Tensor()};
}

}  // namespace polyattn
