// Short convolution of each channel by itself, for rows [B, N, C]:
//
//   of a sequence: y[n] = sum_t weight[t] * x[n - (width - 1) + t], with zeros
//                  before its beginning
//   of a picture:  3 x 3 around each patch, with zeros beyond its edges
//
// Parameter: weight [C, 1, width] or [C, 1, 3, 3], as torch's Conv1d and Conv2d
// with a group for each channel have it. It begins as the identity.
#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <optional>

namespace polyattn::nn {

// The rows are the patches of a picture, line by line; rows before them, as a
// class token, are left alone.
struct Grid {
  std::int64_t height = 1;
  std::int64_t width = 1;
};

struct ShortConvOptions {
  ShortConvOptions(std::int64_t channels, std::int64_t width)
      : channels_(channels), width_(width) {}

  TORCH_ARG(std::int64_t, channels);
  // 3 on a grid.
  TORCH_ARG(std::int64_t, width);
  TORCH_ARG(std::optional<Grid>, grid) = std::nullopt;
};

class ShortConvImpl : public torch::nn::Cloneable<ShortConvImpl> {
 public:
  explicit ShortConvImpl(const ShortConvOptions& options_);

  void reset() override;
  void reset_parameters();

  torch::Tensor forward(const torch::Tensor& rows);

  // For rows that follow on others, of which `tail` has the last width - 1, or
  // is undefined if there are none. It becomes that of all of them.
  torch::Tensor forward(const torch::Tensor& rows, torch::Tensor& tail);

  ShortConvOptions options;
  torch::Tensor weight;

 private:
  torch::Tensor on_grid(const torch::Tensor& rows, const torch::Tensor& taps);
};

TORCH_MODULE(ShortConv);

}  // namespace polyattn::nn
