// Rotary positions: the pair (x_i, x_{i + R/2}) of a row at position p is
// turned by the angle p * base^(-2i/R), for i < R/2, so that q . k depends on
// the distance of the two rows alone. R is `fraction` of the width of a head,
// made even; the columns from R on are left as they are.
#pragma once

#include <torch/arg.h>
#include <torch/types.h>

#include <cstdint>

namespace polyattn::nn {

struct RotaryOptions {
  TORCH_ARG(double, base) = 10000;
  TORCH_ARG(double, fraction) = 1;
};

// The sines and cosines are no parameters and no part of a state: they are made
// when they are needed, for as many positions as are needed, on the device of
// the rows. In f32, or in f64 for rows of f64.
class Rotary {
 public:
  Rotary(const RotaryOptions& options, std::int64_t head_dim);

  // x [..., N, D], whose first row has position `first`.
  torch::Tensor rotate(const torch::Tensor& x, std::int64_t first);

  // Positions for which there are tables now.
  std::int64_t capacity() const;

 private:
  void grow(std::int64_t rows, const torch::Tensor& like);

  RotaryOptions options_;
  std::int64_t width_;  // R
  torch::Tensor cos_;   // [capacity, R/2]
  torch::Tensor sin_;
};

}  // namespace polyattn::nn
