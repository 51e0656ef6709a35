#include "polyattn/nn/rotary.h"

#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace polyattn::nn {
namespace {

constexpr std::int64_t kFirstCapacity = 64;

torch::ScalarType table_type(const torch::Tensor& x) {
  return x.scalar_type() == torch::kDouble ? torch::kDouble : torch::kFloat;
}

}  // namespace

Rotary::Rotary(const RotaryOptions& options, std::int64_t head_dim)
    : options_(options) {
  TORCH_CHECK(std::isfinite(options.base()) && options.base() > 1,
              "[Rotary] base ", options.base(), " is not above 1");
  TORCH_CHECK(options.fraction() > 0 && options.fraction() <= 1,
              "[Rotary] fraction ", options.fraction(), " is not in (0, 1]");
  const double width = options.fraction() * static_cast<double>(head_dim);
  width_ = 2 * static_cast<std::int64_t>(width / 2);
  TORCH_CHECK(width_ >= 2, "[Rotary] fraction ", options.fraction(),
              " of head_dim ", head_dim, " leaves no pair to turn");
}

std::int64_t Rotary::capacity() const {
  return cos_.defined() ? cos_.size(0) : 0;
}

// Angles are made in double: position 10^5 in f32 would be off by 0.01.
void Rotary::grow(std::int64_t rows, const torch::Tensor& like) {
  const auto type = table_type(like);
  const bool fits = cos_.defined() && cos_.scalar_type() == type &&
                    cos_.device() == like.device();
  if (fits && capacity() >= rows) return;
  const torch::NoGradGuard no_grad;
  const std::int64_t wanted =
      std::max({rows, fits ? 2 * capacity() : capacity(), kFirstCapacity});
  const auto exponent =
      torch::arange(0, width_, 2, torch::kDouble) / static_cast<double>(width_);
  const auto angle =
      torch::outer(torch::arange(wanted, torch::kDouble),
                   torch::exp(-std::log(options_.base()) * exponent));
  cos_ = angle.cos().to(like.device(), type);
  sin_ = angle.sin().to(like.device(), type);
}

torch::Tensor Rotary::rotate(const torch::Tensor& x, std::int64_t first) {
  TORCH_CHECK(x.dim() >= 2 && x.size(-1) >= width_, "[Rotary] x of size ",
              x.sizes(), " has no ", width_, " columns to turn");
  const std::int64_t n = x.size(-2);
  grow(first + n, x);
  const torch::Tensor cos = cos_.narrow(0, first, n);
  const torch::Tensor sin = sin_.narrow(0, first, n);
  const auto part = [&](std::int64_t begin, std::int64_t width) {
    return x.narrow(-1, begin, width).to(cos_.scalar_type());
  };
  const torch::Tensor a = part(0, width_ / 2);
  const torch::Tensor b = part(width_ / 2, width_ / 2);
  std::vector<torch::Tensor> parts = {a * cos - b * sin, b * cos + a * sin};
  if (width_ < x.size(-1)) parts.push_back(part(width_, x.size(-1) - width_));
  return torch::cat(parts, -1).to(x.scalar_type());
}

}  // namespace polyattn::nn
