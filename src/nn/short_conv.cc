#include "polyattn/nn/short_conv.h"

#include <torch/utils.h>

#include "nn/depthwise.h"

namespace polyattn::nn {

ShortConvImpl::ShortConvImpl(const ShortConvOptions& options_)
    : options(options_) {
  TORCH_CHECK(options.channels() > 0, "[ShortConv] channels ",
              options.channels(), " < 1");
  TORCH_CHECK(options.width() > 0, "[ShortConv] width ", options.width(),
              " < 1");
  TORCH_CHECK(!options.grid() || options.width() == 3, "[ShortConv] width ",
              options.width(), " is not 3, which it is on a grid");
  ShortConvImpl::reset();
}

void ShortConvImpl::reset() {
  const std::int64_t c = options.channels(), w = options.width();
  weight =
      register_parameter("weight", options.grid() ? torch::empty({c, 1, w, w})
                                                  : torch::empty({c, 1, w}));
  reset_parameters();
}

void ShortConvImpl::reset_parameters() {
  const torch::NoGradGuard no_grad;
  weight.zero_();
  const torch::Tensor taps = weight.flatten(1);
  taps.select(1, options.grid() ? taps.size(1) / 2 : taps.size(1) - 1).fill_(1);
}

torch::Tensor ShortConvImpl::on_grid(const torch::Tensor& rows,
                                     const torch::Tensor& taps) {
  const Grid grid = *options.grid();
  const std::int64_t patches = grid.height * grid.width;
  const std::int64_t before = rows.size(1) - patches;
  TORCH_CHECK(before >= 0, "[ShortConv] ", rows.size(1),
              " rows are fewer than the ", patches, " patches of the grid");
  const auto y = depthwise(rows.narrow(1, before, patches)
                               .unflatten(1, {grid.height, grid.width}),
                           taps, {3, 3, 1, 1})
                     .flatten(1, 2);
  return before > 0 ? torch::cat({rows.narrow(1, 0, before), y}, 1) : y;
}

torch::Tensor ShortConvImpl::forward(const torch::Tensor& rows) {
  TORCH_CHECK(rows.dim() == 3 && rows.size(2) == options.channels(),
              "[ShortConv] rows of size ", rows.sizes(), " are not [B, N, ",
              options.channels(), "]");
  // Under autocast rows are narrower than the weight.
  const auto type = c10::promoteTypes(
      torch::kFloat,
      c10::promoteTypes(rows.scalar_type(), weight.scalar_type()));
  const torch::Tensor wide = rows.to(type);
  const torch::Tensor taps = weight.flatten(1).t().to(type);
  const std::int64_t w = options.width();
  const torch::Tensor y =
      options.grid()
          ? on_grid(wide, taps)
          : depthwise(wide.unsqueeze(2), taps, {w, 1, w - 1, 0}).squeeze(2);
  return y.to(rows.scalar_type());
}

torch::Tensor ShortConvImpl::forward(const torch::Tensor& rows,
                                     torch::Tensor& tail) {
  TORCH_CHECK(!options.grid(), "[ShortConv] patches of a grid have no order");
  const std::int64_t n = rows.size(1), kept = options.width() - 1;
  if (!tail.defined()) {
    tail = torch::zeros({rows.size(0), kept, rows.size(2)}, rows.options());
  }
  TORCH_CHECK(tail.size(0) == rows.size(0) && tail.size(1) == kept &&
                  tail.size(2) == rows.size(2),
              "[ShortConv] rows of size ", rows.sizes(),
              " do not follow on a tail of size ", tail.sizes());
  const torch::Tensor all = torch::cat({tail, rows}, 1);
  tail = all.narrow(1, n, kept).clone();
  return forward(all).narrow(1, kept, n);
}

}  // namespace polyattn::nn
