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

// Of a text that is read piece by piece: tables of what lies beyond are made
// for each piece and not kept, so that decoding takes no more memory the longer
// it goes on.
constexpr std::int64_t kMostDecoded = 4096;

struct Table {
  torch::Tensor cos, sin;  // [rows, width/2]
};

// Angles are made in double: position 10^5 in f32 would be off by 0.01.
Table make_table(std::int64_t first, std::int64_t rows, std::int64_t width,
                 double base, const torch::Tensor& like) {
  const torch::NoGradGuard no_grad;
  const auto exponent =
      torch::arange(0, width, 2, torch::kDouble) / static_cast<double>(width);
  const auto angle =
      torch::outer(torch::arange(first, first + rows, torch::kDouble),
                   torch::exp(-std::log(base) * exponent));
  return {angle.cos().to(like.device(), table_type(like)),
          angle.sin().to(like.device(), table_type(like))};
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

void Rotary::grow(std::int64_t rows, const torch::Tensor& like) {
  const bool fits = cos_.defined() && cos_.scalar_type() == table_type(like) &&
                    cos_.device() == like.device();
  if (fits && capacity() >= rows) return;
  const std::int64_t wanted =
      std::max({rows, fits ? 2 * capacity() : capacity(), kFirstCapacity});
  const Table table = make_table(0, wanted, width_, options_.base(), like);
  cos_ = table.cos;
  sin_ = table.sin;
}

torch::Tensor Rotary::rotate(const torch::Tensor& x, std::int64_t first) {
  TORCH_CHECK(x.dim() >= 2 && x.size(-1) >= width_, "[Rotary] x of size ",
              x.sizes(), " has no ", width_, " columns to turn");
  const std::int64_t n = x.size(-2);
  Table table;
  if (first > 0 && first + n > kMostDecoded) {
    table = make_table(first, n, width_, options_.base(), x);
  } else {
    grow(first + n, x);
    table = {cos_.narrow(0, first, n), sin_.narrow(0, first, n)};
  }
  const auto part = [&](std::int64_t begin, std::int64_t width) {
    return x.narrow(-1, begin, width).to(table_type(x));
  };
  const torch::Tensor a = part(0, width_ / 2);
  const torch::Tensor b = part(width_ / 2, width_ / 2);
  std::vector<torch::Tensor> parts = {a * table.cos - b * table.sin,
                                      b * table.cos + a * table.sin};
  if (width_ < x.size(-1)) parts.push_back(part(width_, x.size(-1) - width_));
  return torch::cat(parts, -1).to(x.scalar_type());
}

}  // namespace polyattn::nn
