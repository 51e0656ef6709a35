#include "nn/depthwise.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <vector>

namespace polyattn::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kPlaces = 64;         // of a task
constexpr std::int64_t kSummedPlaces = 256;  // of a task of the gradient

DepthwiseShape shape_of(const torch::Tensor& x, const Window& window) {
  return {x.size(0), x.size(1), x.size(2), x.size(3), window};
}

torch::Tensor convolve(const torch::Tensor& x, const torch::Tensor& taps,
                       const Window& window) {
  const DepthwiseShape shape = shape_of(x, window);
  torch::Tensor y = torch::empty_like(x);
  at::parallel_for(0, shape.batch * shape.places(), kPlaces,
                   [&](std::int64_t first, std::int64_t last) {
                     depthwise_forward(x.data_ptr<float>(),
                                       taps.data_ptr<float>(), shape, first,
                                       last, y.data_ptr<float>());
                   });
  return y;
}

// Each task sums in f32 what its places give; the sums are added up in f64.
torch::Tensor tap_gradient(const torch::Tensor& x, const torch::Tensor& dy,
                           const Window& window) {
  const DepthwiseShape shape = shape_of(x, window);
  const std::int64_t places = shape.batch * shape.places();
  const std::int64_t tasks = (places + kSummedPlaces - 1) / kSummedPlaces;
  torch::Tensor sums =
      torch::zeros({tasks, shape.taps(), shape.channels}, x.options());
  at::parallel_for(0, tasks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = i * kSummedPlaces;
      depthwise_taps_backward(x.data_ptr<float>(), dy.data_ptr<float>(), shape,
                              first, std::min(first + kSummedPlaces, places),
                              sums.data_ptr<float>() + i * sums.stride(0));
    }
  });
  return sums.sum(0, /*keepdim=*/false, torch::kDouble).to(torch::kFloat);
}

// The part of x that each tap sees, x being padded: [B, I, J, C].
std::vector<torch::Tensor> seen_by_taps(const torch::Tensor& x,
                                        const Window& w) {
  const torch::Tensor padded = torch::constant_pad_nd(
      x, {0, 0, w.left, w.width - 1 - w.left, w.top, w.height - 1 - w.top});
  std::vector<torch::Tensor> parts;
  for (std::int64_t k = 0; k < w.height * w.width; ++k) {
    parts.push_back(padded.narrow(1, k / w.width, x.size(1))
                        .narrow(2, k % w.width, x.size(2)));
  }
  return parts;
}

// As tap_gradient, in torch ops, which can be differentiated again.
torch::Tensor composed_tap_gradient(const torch::Tensor& x,
                                    const torch::Tensor& dy, const Window& w) {
  std::vector<torch::Tensor> gradients;
  for (const torch::Tensor& part : seen_by_taps(x, w))
    gradients.push_back((part * dy).sum({0, 1, 2}));
  return torch::stack(gradients);
}

class Depthwise : public torch::autograd::Function<Depthwise> {
 public:
  static torch::Tensor forward(AutogradContext* ctx, const torch::Tensor& x,
                               const torch::Tensor& taps, const Window& w) {
    ctx->save_for_backward({x, taps});
    ctx->saved_data["window"] =
        std::vector<std::int64_t>{w.height, w.width, w.top, w.left};
    return convolve(x.contiguous(), taps.contiguous(), w);
  }

  // x is reached by the same taps the other way round.
  static variable_list backward(AutogradContext* ctx,
                                const variable_list& outer) {
    const variable_list saved = ctx->get_saved_variables();
    const torch::Tensor &x = saved[0], &taps = saved[1], &dy = outer[0];
    const auto size = ctx->saved_data["window"].toIntVector();
    const Window w{size[0], size[1], size[2], size[3]};
    const Window back{w.height, w.width, w.height - 1 - w.top,
                      w.width - 1 - w.left};
    return {depthwise(dy, taps.flip(0), back),
            torch::GradMode::is_enabled()
                ? composed_tap_gradient(x, dy, w)
                : tap_gradient(x.contiguous(), dy.contiguous(), w),
            torch::Tensor()};
  }
};

}  // namespace

torch::Tensor depthwise(const torch::Tensor& x, const torch::Tensor& taps,
                        const Window& window) {
  if (x.is_cpu() && x.scalar_type() == torch::kFloat &&
      taps.scalar_type() == torch::kFloat) {
    return Depthwise::apply(x, taps, window);
  }
  torch::Tensor y;
  const auto parts = seen_by_taps(x, window);
  for (std::size_t k = 0; k < parts.size(); ++k) {
    const auto product = parts[k] * taps[static_cast<std::int64_t>(k)];
    y = y.defined() ? y + product : product;
  }
  return y;
}

}  // namespace polyattn::nn
