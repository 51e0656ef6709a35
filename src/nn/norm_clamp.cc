#include "nn/norm_clamp.h"

namespace polyattn::nn {
namespace {

// ||A||_F^2, [B, H]: A is attention to the rows of the identity, which torch
// makes in f32 and f64 alone.
torch::Tensor squared_norms(const torch::Tensor& q, const torch::Tensor& k,
                            const polyattn::AttentionOptions& call) {
  const auto one = torch::eye(k.size(2)).to(k.options());
  const torch::Tensor a = polyattn::attention(
      q, k, one.expand({k.size(0), k.size(1), -1, -1}), call);
  const bool wide = a.scalar_type() == torch::kDouble;
  return (wide ? a : a.to(torch::kFloat)).square().sum({2, 3});
}

}  // namespace

torch::Tensor log_norm_excess(const torch::Tensor& q, const torch::Tensor& k,
                              const polyattn::AttentionOptions& call,
                              double factor) {
  const auto own = polyattn::AttentionOptions(call).dropout(0);
  auto softmax = polyattn::AttentionOptions(own).activation("softmax");
  softmax.coefficients(c10::nullopt);
  const torch::Tensor square = squared_norms(q, k, own);
  const torch::Tensor target = squared_norms(q, k, softmax) * (factor * factor);
  const torch::Tensor zero = square.eq(0);
  return 0.5 * (square.masked_fill(zero, 1).log() -
                target.masked_fill(zero, 1).log());
}

}  // namespace polyattn::nn
