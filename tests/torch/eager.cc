#include "torch/eager.h"

#include <cmath>
#include <limits>
#include <stdexcept>

namespace polyattn::test {
namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() &&
         text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Once for each query head.
at::Tensor repeated(const at::Tensor& t, std::int64_t heads) {
  const at::Tensor wide = t.to(at::kDouble);
  return t.size(1) == heads ? wide
                            : wide.repeat_interleave(heads / t.size(1), 1);
}

at::Tensor causal_seen(std::int64_t n, std::int64_t m, Causal causal) {
  const at::Tensor i = at::arange(n).view({n, 1}), j = at::arange(m);
  if (causal == Causal::kFirst) return j.le(i);
  if (causal == Causal::kLast) return j.le(i + (m - n));
  return at::ones({n, m}, at::kBool);
}

at::Tensor polynomial(const at::Tensor& s, const at::Tensor& coefficients) {
  const at::Tensor c = coefficients.to(at::kDouble);
  at::Tensor sum = at::zeros_like(s);
  for (std::int64_t i = 0; i < c.size(-1); ++i) {
    const at::Tensor own = c.select(-1, i);
    sum = sum + s.pow(i) * (own.dim() == 1 ? own.view({1, -1, 1, 1}) : own);
  }
  return sum;
}

// The weights without /sqrt(N), /N and /sum.
at::Tensor raw_weights(const at::Tensor& s, const at::Tensor& n,
                       const AttentionOptions& options) {
  if (options.coefficients()) return polynomial(s, *options.coefficients());
  const std::string& f = options.activation();
  if (f == "x^3/sqrt(N)" || f == "x^3/sum") return s.pow(3);
  if (f == "1 + x + x^2/2") return 1 + s + s.pow(2) / 2;
  if (f == "x^4/sum") return s.pow(4);
  if (f == "x^3/14") return s.pow(3) / 14;
  if (f == "sigmoid") return at::sigmoid(s - n.clamp_min(1).log());
  if (f == "sigmoid(x)") return at::sigmoid(s);
  if (f == "relu^2/N") return at::relu(s).pow(2);
  throw std::invalid_argument("no eager definition of " + f);
}

}  // namespace

EagerScores eager_scores(const at::Tensor& q, const at::Tensor& k,
                         const AttentionOptions& options) {
  const std::int64_t n = q.size(2), m = k.size(2), heads = q.size(1);
  const double scale =
      options.scale().value_or(1 / std::sqrt(static_cast<double>(q.size(3))));
  at::Tensor s =
      at::matmul(q.to(at::kDouble), repeated(k, heads).transpose(2, 3)) * scale;
  at::Tensor seen = causal_seen(n, m, options.causal());
  if (options.mask()) {
    const at::Tensor& mask = *options.mask();
    const bool is_bool = mask.scalar_type() == at::kBool;
    seen = seen.logical_and(is_bool ? mask : mask.ne(kHidden));
    if (!is_bool) s = s + mask.to(at::kDouble).masked_fill(mask.eq(kHidden), 0);
  }
  if (options.bias()) {
    const at::Tensor gone = options.bias()->eq(kHidden);
    seen = seen.logical_and(~gone);
    s = s + options.bias()->to(at::kDouble).masked_fill(gone, 0);
  }
  seen = seen.expand_as(s);
  return {s, seen, seen.sum(3, true).to(at::kDouble)};
}

at::Tensor eager_weights(const EagerScores& scores,
                         const AttentionOptions& options) {
  const auto& [s, seen, n] = scores;
  const at::Tensor zero = at::zeros_like(s);
  const std::string& f = options.activation();
  if (f == "softmax") {
    // Finite, so that a row that sees nothing gets no NaN as gradient.
    return at::where(seen, at::softmax(s.masked_fill(~seen, -1e300), 3), zero);
  }
  const at::Tensor w = at::where(seen, raw_weights(s, n, options), zero);
  if (ends_with(f, "/sqrt(N)")) return w / n.clamp_min(1).sqrt();
  if (ends_with(f, "/N")) return w / n.clamp_min(1);
  if (!ends_with(f, "/sum")) return w;
  const at::Tensor sum = w.abs().sum(3, true);
  return w / at::where(sum.eq(0), at::ones_like(sum), sum);
}

at::Tensor eager_attention(const at::Tensor& q, const at::Tensor& k,
                           const at::Tensor& v,
                           const AttentionOptions& options) {
  return at::matmul(eager_weights(eager_scores(q, k, options), options),
                    repeated(v, q.size(1)));
}

}  // namespace polyattn::test
