// The double backward on the CPU: the kernel of the core on threads of torch.
#include <ATen/ATen.h>

#include <optional>

#include "polyattn/double_backward.h"
#include "torch/core_errors.h"
#include "torch/fused.h"
#include "torch/gradient_parts.h"
#include "torch/layout.h"
#include "torch/parallel.h"
#include "torch/parts.h"
#include "torch/saved_call.h"

namespace polyattn {
namespace {

// The heads of a part, with dense rows, and what keeps them alive.
class Heads {
 public:
  Heads(const at::Tensor& t, const Part& part, std::int64_t group) {
    if (t.defined())
      own_ = with_dense_rows(heads_of(t, part.first, part.count, group));
  }
  std::optional<ConstTensor> view() const {
    if (!own_.defined()) return {};
    return view_of(own_);
  }

 private:
  at::Tensor own_;
};

// Of a bias, which all heads may share.
std::optional<ConstTensor> bias_view(const at::Tensor& t, const Part& part) {
  if (!t.defined()) return {};
  return view_of(t.size(1) == 1 ? t : t.narrow(1, part.first, part.count));
}

struct GradientsOfSecond {
  Gradient d_o, dq, dk, dv, d_bias;

  void run(const Part& part, const SecondCall& second) {
    TorchParallel parallel;
    const at::TensorList u = second.cotangents;
    const Heads d_o_in(second.d_o, part, 1), uq(u[kQ], part, 1);
    const Heads uk(u[kK], part, part.group), uv(u[kV], part, part.group);
    const AttentionDoubleInputs in = {.rows = part.rows(second.rows),
                                      .d_o = d_o_in.view(),
                                      .uq = uq.view(),
                                      .uk = uk.view(),
                                      .uv = uv.view(),
                                      .u_bias = bias_view(u[kBias], part)};
    const AttentionDoubleGradients out = {.d_o = d_o.view_for(part, 1),
                                          .dq = dq.view_for(part, 1),
                                          .dk = dk.view_for(part, part.group),
                                          .dv = dv.view_for(part, part.group),
                                          .d_bias = d_bias.view_for_bias(part)};
    AttentionConfig config = part.call.config;
    config.path = Path::kDense;  // there is no other
    with_torch_errors([&] {
      attention_double_backward(part.inputs(), config, in, out, parallel);
    });
    dk.finish_part();
    dv.finish_part();
    d_bias.finish_part();
  }
};

}  // namespace

SecondGradients double_on_cpu(const SecondCall& second, SecondWanted wanted) {
  const Call& call = second.call;
  const bool no_heads = call.q.size(1) == 0;
  const auto empty_if = [&](bool wants, const at::Tensor& like) {
    return Gradient(wants ? empty_gradient(like) : at::Tensor(), no_heads);
  };
  GradientsOfSecond gradients{
      {wanted[0] ? empty_output(call.q, call.v.size(3)) : at::Tensor(),
       no_heads},
      empty_if(wanted[1], call.q),
      empty_if(wanted[2], call.k),
      empty_if(wanted[3], call.v),
      {wanted[4] ? at::empty(call.bias.sizes(), call.bias.options())
                 : at::Tensor(),
       no_heads}};
  for (const Part& part : parts_of(call)) gradients.run(part, second);
  return {gradients.d_o.total(), gradients.dq.total(), gradients.dk.total(),
          gradients.dv.total(), gradients.d_bias.total()};
}

}  // namespace polyattn
