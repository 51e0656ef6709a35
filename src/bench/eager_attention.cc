#include "bench/eager_attention.h"

#include <algorithm>
#include <limits>

#include "nn/other_ops.h"

namespace polyattn::bench {
namespace {

// Key j is seen by row i if j <= i + diagonal.
std::int64_t diagonal_of(Causal causal, std::int64_t n, std::int64_t m) {
  return causal == Causal::kLast ? m - n : 0;
}

torch::Tensor softmax_weights(const torch::Tensor& scores, Causal causal) {
  if (causal == Causal::kNone) return torch::softmax(scores, -1);
  const std::int64_t n = scores.size(-2), m = scores.size(-1);
  const torch::Tensor seen =
      torch::ones({n, m}, scores.options().dtype(torch::kBool))
          .tril(diagonal_of(causal, n, m));
  return torch::softmax(
      scores.masked_fill(~seen, -std::numeric_limits<double>::infinity()), -1);
}

// 1, 1/sqrt(n) or 1/n for each row: [N, 1], or [1, 1] if all are equal.
torch::Tensor row_factors(const torch::Tensor& scores, Divisor divisor,
                          Causal causal) {
  const std::int64_t n = scores.size(-2), m = scores.size(-1);
  torch::Tensor seen =
      torch::full({1, 1}, static_cast<double>(m), scores.options());
  if (causal != Causal::kNone) {
    seen = torch::arange(1, n + 1, scores.options()).unsqueeze(1) +
           diagonal_of(causal, n, m);
    seen = seen.clamp(1, m);
  }
  switch (divisor) {
    case Divisor::kSqrtN:
      return seen.rsqrt();
    case Divisor::kN:
      return seen.reciprocal();
    default:
      return torch::ones({1, 1}, scores.options());
  }
}

torch::Tensor power_weights(const torch::Tensor& scores,
                            const Activation& activation, Causal causal) {
  const int p = activation.degree;
  const double c = activation.coefficient[static_cast<std::size_t>(p)];
  const torch::Tensor weights =
      scores.pow(p) * (row_factors(scores, activation.divisor, causal) * c);
  if (causal == Causal::kNone) return weights;
  return weights.tril(diagonal_of(causal, scores.size(-2), scores.size(-1)));
}

bool is_known(const Activation& activation) {
  if (activation.kind == ActivationKind::kSoftmax) return true;
  const auto& c = activation.coefficient;
  return activation.kind == ActivationKind::kPolynomial &&
         activation.divisor != Divisor::kSum && activation.degree >= 1 &&
         std::count(c.begin(), c.end(), 0.0) ==
             static_cast<std::ptrdiff_t>(c.size()) - 1;
}

}  // namespace

torch::Tensor eager_attention(const torch::Tensor& q, const torch::Tensor& k,
                              const torch::Tensor& v,
                              const AttentionOptions& options) {
  const Activation activation = Activation::parse(options.activation());
  TORCH_CHECK(is_known(activation) && !options.mask() &&
                  !options.coefficients() && options.scale(),
              "[eager_attention] not for ", options.activation(),
              ", a mask, coefficients, or the default scale");
  const std::int64_t groups = q.size(1) / k.size(1);
  const auto repeated = [&](const torch::Tensor& t) {
    return groups == 1 ? t : t.repeat_interleave(groups, 1);
  };
  const torch::Tensor scores =
      torch::matmul(q * *options.scale(), repeated(k).transpose(-2, -1));
  torch::Tensor weights =
      activation.kind == ActivationKind::kSoftmax
          ? softmax_weights(scores, options.causal())
          : power_weights(scores, activation, options.causal());
  weights = torch::dropout(weights, options.dropout(), options.dropout() > 0);
  return torch::matmul(weights, repeated(v));
}

void make_eager(torch::nn::Module& module) {
  nn::replace_ops(module,
                  {.attention = eager_attention,
                   .gelu = [](const auto& x) { return torch::gelu(x); }});
}

}  // namespace polyattn::bench
