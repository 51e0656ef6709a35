// Maps [B, height, width, C] cut into square windows, and what tokens of a
// window know of each other's places. N = side^2 tokens of a window are counted
// row by row, and so are the W windows of a map.
#pragma once

#include <torch/types.h>

#include <cstdint>

namespace polyattn::nn {

// How a map lies in its windows: zeros below and on the right fill it up to
// multiples of the side, then it is shifted around, up and to the left.
struct WindowGrid {
  std::int64_t side = 0;
  std::int64_t height = 0, width = 0;            // of the map
  std::int64_t rows = 0, columns = 0;            // of windows
  std::int64_t shift_down = 0, shift_right = 0;  // of the windows

  bool shifted() const { return shift_down > 0 || shift_right > 0; }
};

// Along an axis with one window there is no shift.
WindowGrid window_grid(std::int64_t height, std::int64_t width,
                       std::int64_t side, std::int64_t shift);

// [B, height, width, C] -> [B, W, N, C], and back.
torch::Tensor to_windows(const torch::Tensor& map, const WindowGrid& grid);
torch::Tensor from_windows(const torch::Tensor& windows,
                           const WindowGrid& grid);

// bool [W, 1, N, N]: true for tokens of a window that are neighbours on the map
// too, where the shift brought its opposite edges together. Undefined without a
// shift: all see all.
torch::Tensor shift_mask(const WindowGrid& grid);

// i64 [N N]: of each pair of tokens the row of their offset in a table of
// (2 side - 1)^2 offsets, again row by row.
torch::Tensor offset_index(std::int64_t side);

// f64 [(2 side - 1)^2, 2]: these offsets on a logarithmic scale on which the
// largest is log2(9) / 3, rows first.
torch::Tensor log_offsets(std::int64_t side);

}  // namespace polyattn::nn
