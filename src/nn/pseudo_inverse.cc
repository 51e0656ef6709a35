#include "nn/pseudo_inverse.h"

#include <ATen/ops/linalg_pinv.h>

#include <limits>

namespace polyattn::nn {
namespace {

// What A^T is divided by at first: [B, H, 1, 1], or a single number. A matrix
// of zeros has zeros for its inverse.
torch::Tensor first_divisor(const torch::Tensor& a, bool of_batch) {
  const torch::Tensor size = a.abs();
  torch::Tensor columns = size.sum(-2).amax(-1, /*keepdim=*/true);
  torch::Tensor rows = size.sum(-1).amax(-1, /*keepdim=*/true);
  if (of_batch) {
    columns = columns.max();
    rows = rows.max();
  } else {
    columns = columns.unsqueeze(-1);
    rows = rows.unsqueeze(-1);
  }
  return (columns * rows).clamp_min(std::numeric_limits<float>::min());
}

torch::Tensor iterated(const torch::Tensor& a, const NystromOptions& options) {
  const torch::Tensor one = torch::eye(a.size(-1), a.options());
  torch::Tensor z =
      a.transpose(-2, -1) / first_divisor(a, options.scaling() == "batch");
  for (std::int64_t i = 0; i < options.iterations(); ++i) {
    const torch::Tensor az = a.matmul(z);
    const torch::Tensor inner = 15 * one - az.matmul(7 * one - az);
    z = 0.25 * z.matmul(13 * one - az.matmul(inner));
  }
  return z;
}

}  // namespace

torch::Tensor pseudo_inverse(const torch::Tensor& a,
                             const NystromOptions& options) {
  if (options.inverse() == "iterative") return iterated(a, options);
  return at::linalg_pinv(a.to(torch::kDouble), options.rcond(),
                         /*hermitian=*/false)
      .to(a.scalar_type());
}

}  // namespace polyattn::nn
