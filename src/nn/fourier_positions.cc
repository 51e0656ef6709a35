#include "polyattn/nn/fourier_positions.h"

#include <numbers>

namespace polyattn::nn {
namespace {

constexpr std::int64_t kFrequencies = 16;  // of each axis
constexpr double kLongest = 10000;
constexpr double kEps = 1e-6;

// Of an axis of so many places: [places, 32].
torch::Tensor waves(std::int64_t places) {
  const auto at = torch::arange(1, places + 1, torch::kDouble) /
                  (static_cast<double>(places) + kEps) * 2 * std::numbers::pi;
  const auto periods = torch::pow(
      kLongest, torch::arange(kFrequencies, torch::kDouble) / kFrequencies);
  const auto angles = at.unsqueeze(1) / periods;
  return torch::stack({angles.sin(), angles.cos()}, 2).flatten(1);
}

// [1, 64, height, width].
torch::Tensor encoding(const Grid& grid) {
  const auto lines = waves(grid.height).t().unsqueeze(2);
  const auto columns = waves(grid.width).t().unsqueeze(1);
  return torch::cat({lines.expand({-1, -1, grid.width}),
                     columns.expand({-1, grid.height, -1})})
      .unsqueeze(0);
}

}  // namespace

FourierPositionsImpl::FourierPositionsImpl(std::int64_t dim) : dim_(dim) {
  TORCH_CHECK(dim > 0, "[FourierPositions] dim ", dim, " < 1");
  FourierPositionsImpl::reset();
}

void FourierPositionsImpl::reset() {
  projection = register_module(
      "projection",
      torch::nn::Conv2d(torch::nn::Conv2dOptions(4 * kFrequencies, dim_, 1)));
}

torch::Tensor FourierPositionsImpl::forward(const torch::Tensor& x,
                                            const Grid& grid) {
  TORCH_CHECK(x.dim() == 3 && x.size(1) == grid.height * grid.width &&
                  x.size(2) == dim_,
              "[FourierPositions] x of size ", x.sizes(), " is not [B, ",
              grid.height * grid.width, ", ", dim_, "], for a grid of ",
              grid.height, " x ", grid.width);
  const torch::Tensor rows =
      projection->forward(encoding(grid).to(projection->weight.options()));
  return x + rows.flatten(2).transpose(1, 2);
}

}  // namespace polyattn::nn
