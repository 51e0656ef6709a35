#include "nn/eager.h"

#include <algorithm>
#include <limits>

namespace polyattn::nn {
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
torch::Tensor row_factors(const EagerCall& call, std::int64_t n,
                          std::int64_t m) {
  torch::Tensor seen =
      torch::full({1, 1}, static_cast<double>(m), call.q.options());
  if (call.causal != Causal::kNone) {
    seen = torch::arange(1, n + 1, call.q.options()).unsqueeze(1) +
           diagonal_of(call.causal, n, m);
    seen = seen.clamp(1, m);
  }
  switch (call.activation.divisor) {
    case Divisor::kSqrtN:
      return seen.rsqrt();
    case Divisor::kN:
      return seen.reciprocal();
    default:
      return torch::ones({1, 1}, call.q.options());
  }
}

torch::Tensor power_weights(const EagerCall& call,
                            const torch::Tensor& scores) {
  const std::int64_t n = scores.size(-2), m = scores.size(-1);
  const int p = call.activation.degree;
  const double c = call.activation.coefficient[static_cast<std::size_t>(p)];
  torch::Tensor weights = scores.pow(p) * (row_factors(call, n, m) * c);
  if (call.causal != Causal::kNone) {
    weights = weights.tril(diagonal_of(call.causal, n, m));
  }
  return weights;
}

}  // namespace

bool eager_knows(const Activation& activation) {
  if (activation.kind == ActivationKind::kSoftmax) return true;
  if (activation.kind != ActivationKind::kPolynomial) return false;
  const auto& c = activation.coefficient;
  return activation.divisor != Divisor::kSum && activation.degree >= 1 &&
         std::count(c.begin(), c.end(), 0.0) ==
             static_cast<std::ptrdiff_t>(c.size()) - 1;
}

torch::Tensor eager_attention(const EagerCall& call) {
  const std::int64_t groups = call.q.size(1) / call.k.size(1);
  const auto repeated = [&](const torch::Tensor& t) {
    return groups == 1 ? t : t.repeat_interleave(groups, 1);
  };
  const torch::Tensor scores =
      torch::matmul(call.q * call.scale, repeated(call.k).transpose(-2, -1));
  torch::Tensor weights = call.activation.kind == ActivationKind::kSoftmax
                              ? softmax_weights(scores, call.causal)
                              : power_weights(call, scores);
  weights = torch::dropout(weights, call.dropout, call.dropout > 0);
  return torch::matmul(weights, repeated(call.v));
}

}  // namespace polyattn::nn
