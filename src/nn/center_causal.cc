#include "nn/center_causal.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include "nn/center_rows.h"

namespace polyattn::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// [B, H, N, E] -> [B, N, H, E] without gaps: as attention leaves its output.
torch::Tensor rows_of(const torch::Tensor& t) {
  return t.transpose(1, 2).contiguous();
}

// The same, but with any stride from row to row: as a projection leaves v.
torch::Tensor strided_rows_of(const torch::Tensor& t) {
  const torch::Tensor rows = t.transpose(1, 2);
  const bool dense = rows.stride(3) == 1 && rows.stride(2) == rows.size(3);
  return dense ? rows : rows.contiguous();
}

// Of rows [B, N, H, E + 1] and [B, N, G, E].
CenterShape shape_of(const torch::Tensor& o, const torch::Tensor& v) {
  return {o.size(1), o.size(2), v.size(2), v.size(3), v.stride(1)};
}

torch::Tensor fused_center(const torch::Tensor& o, const torch::Tensor& v) {
  torch::Tensor y =
      torch::empty({o.size(0), o.size(1), o.size(2), v.size(3)}, o.options());
  const CenterShape shape = shape_of(o, v);
  at::parallel_for(0, o.size(0), 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t b = first; b < last; ++b) {
      center_forward(o.data_ptr<float>() + b * o.stride(0),
                     v.data_ptr<float>() + b * v.stride(0), shape,
                     y.data_ptr<float>() + b * y.stride(0));
    }
  });
  return y.transpose(1, 2);
}

variable_list fused_gradients(const torch::Tensor& o, const torch::Tensor& v,
                              const torch::Tensor& dy) {
  torch::Tensor d_o = torch::empty_like(o);
  torch::Tensor dv = torch::empty(v.sizes(), v.options());
  const CenterShape shape = shape_of(o, v);
  at::parallel_for(0, o.size(0), 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t b = first; b < last; ++b) {
      center_backward(o.data_ptr<float>() + b * o.stride(0),
                      v.data_ptr<float>() + b * v.stride(0),
                      dy.data_ptr<float>() + b * dy.stride(0), shape,
                      d_o.data_ptr<float>() + b * d_o.stride(0),
                      dv.data_ptr<float>() + b * dv.stride(0));
    }
  });
  return {d_o.transpose(1, 2), dv.transpose(1, 2)};
}

// In torch ops, which can be differentiated again.
variable_list composed_gradients(const torch::Tensor& o, const torch::Tensor& v,
                                 const torch::Tensor& dy) {
  const std::int64_t e = v.size(3), groups = v.size(1);
  const torch::Tensor count =
      torch::arange(1, v.size(2) + 1, v.options()).view({-1, 1});
  const torch::Tensor mean = (v.cumsum(2) / count).unsqueeze(2);
  const torch::Tensor outer = dy.unflatten(1, {groups, dy.size(1) / groups});
  const torch::Tensor rest =
      1 - o.narrow(3, e, 1).unflatten(1, {groups, dy.size(1) / groups});
  const torch::Tensor d_sum = -(outer * mean).sum(-1, /*keepdim=*/true);
  const torch::Tensor d_mean = (rest * outer).sum(2) / count;
  return {torch::cat({dy, d_sum.flatten(1, 2)}, -1),
          d_mean.flip(2).cumsum(2).flip(2)};
}

class CenterCausal : public torch::autograd::Function<CenterCausal> {
 public:
  static torch::Tensor forward(AutogradContext* ctx, const torch::Tensor& o,
                               const torch::Tensor& v) {
    ctx->save_for_backward({o, v});
    return fused_center(rows_of(o), strided_rows_of(v));
  }

  static variable_list backward(AutogradContext* ctx,
                                const variable_list& outer) {
    const variable_list saved = ctx->get_saved_variables();
    return torch::GradMode::is_enabled()
               ? composed_gradients(saved[0], saved[1], outer[0])
               : fused_gradients(rows_of(saved[0]), strided_rows_of(saved[1]),
                                 rows_of(outer[0]));
  }
};

}  // namespace

bool is_center_fused(const torch::Tensor& v) {
  return v.is_cpu() && v.scalar_type() == torch::kFloat;
}

torch::Tensor center_causal(const torch::Tensor& o, const torch::Tensor& v) {
  return CenterCausal::apply(o.to(v.scalar_type()), v).to(o.scalar_type());
}

}  // namespace polyattn::nn
