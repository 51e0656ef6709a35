#include "nn/windows.h"

#include <torch/utils.h>

namespace polyattn::nn {
namespace {

// Of each row of tokens, once it is shifted, the part of the map it is from: 1
// for what came round from the other edge.
torch::Tensor came_round(std::int64_t length, std::int64_t shift) {
  return torch::arange(length, torch::kLong).ge(length - shift);
}

torch::Tensor differences(const torch::Tensor& positions) {
  return positions.unsqueeze(1) - positions.unsqueeze(0);
}

}  // namespace

WindowGrid window_grid(std::int64_t height, std::int64_t width,
                       std::int64_t side, std::int64_t shift) {
  const std::int64_t rows = (height + side - 1) / side;
  const std::int64_t columns = (width + side - 1) / side;
  return {.side = side,
          .height = height,
          .width = width,
          .rows = rows,
          .columns = columns,
          .shift_down = rows > 1 ? shift : 0,
          .shift_right = columns > 1 ? shift : 0};
}

torch::Tensor to_windows(const torch::Tensor& map, const WindowGrid& grid) {
  const std::int64_t side = grid.side;
  torch::Tensor x = map;
  const std::int64_t below = grid.rows * side - grid.height;
  const std::int64_t right = grid.columns * side - grid.width;
  if (below > 0 || right > 0) {
    x = torch::constant_pad_nd(x, {0, 0, 0, right, 0, below});
  }
  if (grid.shifted()) {
    x = x.roll({-grid.shift_down, -grid.shift_right}, {1, 2});
  }
  return x.reshape({x.size(0), grid.rows, side, grid.columns, side, -1})
      .transpose(2, 3)
      .reshape({x.size(0), grid.rows * grid.columns, side * side, x.size(3)});
}

torch::Tensor from_windows(const torch::Tensor& windows,
                           const WindowGrid& grid) {
  const std::int64_t side = grid.side, batch = windows.size(0);
  torch::Tensor x =
      windows.reshape({batch, grid.rows, grid.columns, side, side, -1})
          .transpose(2, 3)
          .reshape(
              {batch, grid.rows * side, grid.columns * side, windows.size(3)});
  if (grid.shifted()) {
    x = x.roll({grid.shift_down, grid.shift_right}, {1, 2});
  }
  return x.narrow(1, 0, grid.height).narrow(2, 0, grid.width);
}

torch::Tensor shift_mask(const WindowGrid& grid) {
  if (!grid.shifted()) return {};
  const auto down = came_round(grid.rows * grid.side, grid.shift_down);
  const auto right = came_round(grid.columns * grid.side, grid.shift_right);
  const auto region = 2 * down.to(torch::kLong).unsqueeze(1) +
                      right.to(torch::kLong).unsqueeze(0);
  WindowGrid still = grid;
  still.height = grid.rows * grid.side;
  still.width = grid.columns * grid.side;
  still.shift_down = still.shift_right = 0;
  const auto of_token =
      to_windows(region.unsqueeze(0).unsqueeze(3), still).squeeze(3).squeeze(0);
  return of_token.unsqueeze(2).eq(of_token.unsqueeze(1)).unsqueeze(1);
}

torch::Tensor offset_index(std::int64_t side) {
  const auto token = torch::arange(side * side, torch::kLong);
  const auto row = token.div(side, "floor");
  const auto down = differences(row) + (side - 1);
  const auto right = differences(token - row * side) + (side - 1);
  return (down * (2 * side - 1) + right).flatten();
}

torch::Tensor log_offsets(std::int64_t side) {
  const auto offset = torch::arange(1 - side, side, torch::kDouble) *
                      (8 / static_cast<double>(side - 1));
  const auto scaled = offset.sign() * (offset.abs() + 1).log2() / 3;
  const std::int64_t count = 2 * side - 1;
  return torch::stack({scaled.unsqueeze(1).expand({count, count}),
                       scaled.unsqueeze(0).expand({count, count})},
                      2)
      .view({count * count, 2});
}

}  // namespace polyattn::nn
