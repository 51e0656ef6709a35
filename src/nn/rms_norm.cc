#include "nn/rms_norm.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <numeric>

#include "nn/rms_rows.h"

namespace polyattn::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Rows of a task. Each sums its part of the weight's gradient in f32, so that
// the number of threads makes no difference; the parts are added up in f64.
constexpr std::int64_t kRmsRows = 256;

// Calls body(task, first element, shape of the rows) for each task.
template <typename Body>
void for_each_task(const torch::Tensor& x, double eps, Body body) {
  const std::int64_t dim = x.size(-1), rows = x.numel() / dim;
  const std::int64_t tasks = (rows + kRmsRows - 1) / kRmsRows;
  at::parallel_for(0, tasks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = i * kRmsRows;
      body(i, first * dim,
           RmsShape{std::min(kRmsRows, rows - first), dim,
                    static_cast<float>(eps)});
    }
  });
}

variable_list fused_gradients(const torch::Tensor& x,
                              const torch::Tensor& weight,
                              const torch::Tensor& dy, double eps) {
  const std::int64_t dim = x.size(-1);
  torch::Tensor dx = torch::empty_like(x);
  torch::Tensor parts =
      torch::zeros({x.numel() / dim / kRmsRows + 1, dim}, x.options());
  for_each_task(
      x, eps, [&](std::int64_t i, std::int64_t at, const RmsShape& shape) {
        rms_backward(x.data_ptr<float>() + at, weight.data_ptr<float>(),
                     dy.data_ptr<float>() + at, shape,
                     dx.data_ptr<float>() + at,
                     parts.data_ptr<float>() + i * dim);
      });
  return {dx,
          parts.sum(0, /*keepdim=*/false, torch::kDouble).to(torch::kFloat)};
}

// In torch ops, which can be differentiated again.
variable_list composed_gradients(const torch::Tensor& x,
                                 const torch::Tensor& weight,
                                 const torch::Tensor& dy, double eps) {
  const torch::Tensor inverse =
      torch::rsqrt(x.square().mean(-1, /*keepdim=*/true) + eps);
  const torch::Tensor u = x * inverse, g = dy * weight;
  const torch::Tensor dx = (g - u * (g * u).mean(-1, true)) * inverse;
  std::vector<std::int64_t> rows(static_cast<std::size_t>(x.dim()) - 1);
  std::iota(rows.begin(), rows.end(), 0);
  return {dx, rows.empty() ? dy * u : (dy * u).sum(rows)};
}

class RmsNorm : public torch::autograd::Function<RmsNorm> {
 public:
  static torch::Tensor forward(AutogradContext* ctx, const torch::Tensor& x,
                               const torch::Tensor& weight, double eps) {
    const torch::Tensor dense = x.contiguous(), w = weight.contiguous();
    ctx->save_for_backward({x, weight});
    ctx->saved_data["eps"] = eps;
    torch::Tensor y = torch::empty_like(dense);
    for_each_task(
        dense, eps, [&](std::int64_t, std::int64_t at, const RmsShape& shape) {
          rms_forward(dense.data_ptr<float>() + at, w.data_ptr<float>(), shape,
                      y.data_ptr<float>() + at);
        });
    return y;
  }

  static variable_list backward(AutogradContext* ctx,
                                const variable_list& outer) {
    const variable_list saved = ctx->get_saved_variables();
    const torch::Tensor &x = saved[0], &weight = saved[1], &dy = outer[0];
    const double eps = ctx->saved_data["eps"].toDouble();
    variable_list gradients =
        torch::GradMode::is_enabled()
            ? composed_gradients(x, weight, dy, eps)
            : fused_gradients(x.contiguous(), weight.contiguous(),
                              dy.contiguous(), eps);
    gradients.emplace_back();
    return gradients;
  }
};

}  // namespace

torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& weight,
                       double eps) {
  if (x.is_cpu() && x.scalar_type() == torch::kFloat &&
      weight.scalar_type() == torch::kFloat) {
    return RmsNorm::apply(x, weight, eps);
  }
  const torch::Tensor mean_sq = x.square().mean(-1, /*keepdim=*/true);
  return x * torch::rsqrt(mean_sq + eps) * weight;
}

}  // namespace polyattn::nn
