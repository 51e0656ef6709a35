#include "polyattn/torch/gelu.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <numbers>
#include <span>

#include "polyattn/gelu.h"
#include "torch/parallel.h"

namespace polyattn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <typename T>
std::span<T> span_of(const at::Tensor& t) {
  return {t.data_ptr<float>(), static_cast<std::size_t>(t.numel())};
}

// exp(-x^2/2) / sqrt(2 pi), in torch ops.
at::Tensor density(const at::Tensor& x) {
  return (x.square() * -0.5).exp() *
         (std::numbers::inv_sqrtpi / std::numbers::sqrt2);
}

// (dy, x) -> dy gelu'(x).
class GeluBackward : public torch::autograd::Function<GeluBackward> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& dy,
                            const at::Tensor& x) {
    ctx->save_for_backward({dy, x});
    const at::Tensor dense_x = x.contiguous(), dense_dy = dy.contiguous();
    at::Tensor dx = at::empty_like(dense_x);
    TorchParallel parallel;
    gelu_backward(span_of<const float>(dense_x), span_of<const float>(dense_dy),
                  span_of<float>(dx), parallel);
    return dx;
  }

  // In torch ops, which differentiate themselves further:
  // gelu'(x) = Phi(x) + x density(x), gelu''(x) = (2 - x^2) density(x).
  static variable_list backward(AutogradContext* ctx,
                                const variable_list& outer) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &dy = saved[0], &x = saved[1], &g = outer[0];
    const at::Tensor p = density(x);
    const at::Tensor phi = ((x * (1 / std::numbers::sqrt2)).erf() + 1) * 0.5;
    return {g * (phi + x * p), g * dy * (2 - x.square()) * p};
  }
};

class GeluForward : public torch::autograd::Function<GeluForward> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x) {
    ctx->save_for_backward({x});
    const at::Tensor dense_x = x.contiguous();
    at::Tensor y = at::empty_like(dense_x);
    TorchParallel parallel;
    gelu_forward(span_of<const float>(dense_x), span_of<float>(y), parallel);
    return y;
  }

  static variable_list backward(AutogradContext* ctx,
                                const variable_list& outer) {
    return {GeluBackward::apply(outer[0], ctx->get_saved_variables()[0])};
  }
};

}  // namespace

at::Tensor gelu(const at::Tensor& x) {
  const bool fused =
      x.is_cpu() && x.layout() == at::kStrided && x.scalar_type() == at::kFloat;
  return fused ? GeluForward::apply(x) : at::gelu(x);
}

}  // namespace polyattn
