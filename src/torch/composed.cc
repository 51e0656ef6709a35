#include "torch/composed.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <limits>

#include "core/dropout.h"

namespace polyattn {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// What each row may see, broadcast to [B, H, N, M]; undefined if everything.
at::Tensor visible_keys(const Call& call) {
  const std::int64_t n = call.q.size(2), m = call.k.size(2);
  at::Tensor visible = for_each_example(call.mask, call.q.size(0));
  if (call.bias.defined()) {
    const at::Tensor kept =
        for_each_example(call.bias.detach().ne(-kInf), call.q.size(0));
    visible = visible.defined() ? visible.logical_and(kept) : kept;
  }
  const AttentionConfig& c = call.config;
  const std::int64_t own = c.causal == Causal::kLast ? m - n : 0;
  const std::int64_t ahead = c.causal == Causal::kNone ? c.window.right : 0;
  if (ahead < 0 && c.window.left < 0) return visible;
  at::Tensor near = at::ones({n, m}, call.q.options().dtype(at::kBool));
  if (ahead >= 0) near = near.tril(own + ahead);
  if (c.window.left >= 0) near = near.triu(own - c.window.left);
  return visible.defined() ? visible.logical_and(near)
                           : near.view({1, 1, n, m});
}

// The scores and what a row sees of them.
struct Scores {
  at::Tensor s;        // [B, H, N, M]; zero where not visible
  at::Tensor visible;  // undefined if everything
  at::Tensor n;        // keys that the row sees, [.., .., N or 1, 1]
  at::Tensor fade;     // of decay, zero where not visible; or undefined

  at::Tensor faded(const at::Tensor& t) const {
    return fade.defined() ? t * fade : t;
  }
  at::Tensor zero_hidden(const at::Tensor& t) const {
    return visible.defined() ? t.masked_fill(visible.logical_not(), 0) : t;
  }
};

// fade_ij [B or 1, H or 1, N, M] of attention.h, by differences of the sums of
// the logarithms. In double exp(-1000) is 0, as exp(-inf) is, and so is the
// gradient of what was clamped.
at::Tensor fades_of(const Call& call, const at::Tensor& visible) {
  const std::int64_t n = call.q.size(2), m = call.k.size(2);
  const std::int64_t heads = call.q.size(1);
  at::Tensor logs = call.log_decay.to(at::kDouble).clamp_min(-1000);
  logs = logs.expand({-1, -1, m, 1}).transpose(2, 3);
  if (logs.size(1) > 1 && logs.size(1) != heads)
    logs = logs.repeat_interleave(heads / logs.size(1), 1);
  if (call.mask.defined()) {
    // A removed key is gone with its factor.
    const at::Tensor mask = for_each_example(call.mask, call.q.size(0));
    logs = at::where(mask, logs, at::zeros({}, logs.options()));
  }
  if (m == 0) return at::zeros({1, 1, n, 0}, logs.options());
  const at::Tensor sums = logs.cumsum(3);
  const std::int64_t own = call.config.causal == Causal::kLast ? m - n : 0;
  const at::Tensor last =
      at::arange(n, call.q.options().dtype(at::kLong)).add(own).clamp(0, m - 1);
  const at::Tensor hidden = visible.logical_not();
  const at::Tensor difference =
      sums.index_select(3, last).transpose(2, 3) - sums;
  return difference.masked_fill(hidden, 0).exp().masked_fill(hidden, 0);
}

Scores scores_of(const Call& call) {
  const std::int64_t heads = call.q.size(1), m = call.k.size(2);
  const at::Tensor q = widened(call.q, heads), k = widened(call.k, heads);
  Scores scores;
  at::Tensor s = at::matmul(q * *call.config.scale, k.transpose(2, 3));
  scores.visible = visible_keys(call);
  if (call.bias.defined()) {
    const at::Tensor bias = call.bias.to(s.scalar_type());
    s = s + for_each_example(bias.masked_fill(bias.detach().eq(-kInf), 0),
                             s.size(0));
  }
  if (scores.visible.defined()) {
    at::Tensor seen = scores.visible;
    if (seen.size(3) != m) seen = seen.expand({-1, -1, -1, m});
    scores.n = seen.sum(3, true).to(s.scalar_type());
  } else {
    scores.n = at::full({1, 1, 1, 1}, static_cast<double>(m), s.options());
  }
  scores.s = scores.zero_hidden(s);
  if (!call.log_decay.defined()) return scores;
  const at::Tensor fade = fades_of(call, scores.visible);
  scores.fade = fade.to(s.scalar_type());
  scores.n = fade.square().sum(3, true).to(s.scalar_type());
  return scores;
}

// Coefficient of x^i, broadcast to [B, H, N, M].
at::Tensor coefficient(const Call& call, const at::Tensor& s, std::int64_t i) {
  if (!call.coefficients.defined()) {
    return at::full(
        {1, 1, 1, 1},
        call.config.activation.coefficient[static_cast<std::size_t>(i)],
        s.options());
  }
  return call.coefficients.select(-1, i)
      .to(s.scalar_type())
      .view({1, -1, 1, 1});
}

// Its value, or its derivative by x.
at::Tensor polynomial(const Call& call, const at::Tensor& s, bool derivative) {
  const std::int64_t degree = call.coefficients.defined()
                                  ? call.coefficients.size(-1) - 1
                                  : call.config.activation.degree;
  const std::int64_t last = derivative ? 1 : 0;
  at::Tensor w = at::zeros_like(s);
  for (std::int64_t i = degree; i >= last; --i) {
    const at::Tensor c = coefficient(call, s, i);
    w = w * s + (derivative ? c * i : c);
  }
  return w;
}

at::Tensor shifted_exp(const Scores& scores) {
  at::Tensor s = scores.s.detach();
  if (s.size(3) == 0) return scores.s;
  if (scores.visible.defined()) {
    s = s.masked_fill(scores.visible.logical_not(), -kInf);
  }
  const at::Tensor top = s.amax(3, true);
  return (scores.s - top.masked_fill(top.eq(-kInf), 0)).exp();
}

at::Tensor sigmoid_of(const Call& call, const Scores& scores) {
  return call.config.activation.log_n_bias
             ? (scores.s - scores.n.clamp_min(1).log()).sigmoid()
             : scores.s.sigmoid();
}

at::Tensor relu_power(const at::Tensor& s, int power) {
  at::Tensor w = at::ones_like(s);
  const at::Tensor positive = s.relu();
  for (int i = 0; i < power; ++i) w = w * positive;
  return power == 0 ? s.gt(0).to(s.scalar_type()) : w;
}

// The weights before the divisor.
at::Tensor raw_weights(const Call& call, const Scores& scores) {
  const Activation& a = call.config.activation;
  switch (a.kind) {
    case ActivationKind::kSoftmax:
      return scores.zero_hidden(shifted_exp(scores));
    case ActivationKind::kPolynomial:
      return scores.faded(
          scores.zero_hidden(polynomial(call, scores.s, false)));
    case ActivationKind::kSigmoid:
      return scores.zero_hidden(sigmoid_of(call, scores) * a.gain);
    case ActivationKind::kRelu:
      return scores.zero_hidden(relu_power(scores.s, a.degree) * a.gain);
  }
  return {};
}

// Their derivatives by the scores.
at::Tensor raw_derivatives(const Call& call, const Scores& scores) {
  const Activation& a = call.config.activation;
  switch (a.kind) {
    case ActivationKind::kSoftmax:
      return scores.zero_hidden(shifted_exp(scores));
    case ActivationKind::kPolynomial:
      return scores.faded(scores.zero_hidden(polynomial(call, scores.s, true)));
    case ActivationKind::kSigmoid: {
      const at::Tensor w = sigmoid_of(call, scores);
      return scores.zero_hidden(w * (1 - w) * a.gain);
    }
    case ActivationKind::kRelu:
      return scores.zero_hidden(relu_power(scores.s, a.degree - 1) *
                                (a.gain * a.degree));
  }
  return {};
}

// 1/divisor of each row; zero for a row that sees nothing or sums to zero.
at::Tensor row_scale(const Call& call, const Scores& scores,
                     const at::Tensor& raw) {
  const auto inverse = [](const at::Tensor& t) {
    const at::Tensor zero = t.eq(0);
    return t.masked_fill(zero, 1).reciprocal().masked_fill(zero, 0);
  };
  switch (call.config.activation.divisor) {
    case Divisor::kOne:
      return at::ones({1, 1, 1, 1}, raw.options());
    case Divisor::kSqrtN:
      return inverse(scores.n).sqrt();
    case Divisor::kN:
      return inverse(scores.n);
    case Divisor::kSum:
      return inverse(raw.abs().sum(3, true));
  }
  return {};
}

// ||dA/dS||_F^2, [B, H]. With divisor sum, a row's Jacobian is
// diag(w') / Z - w (sign(w) w')^T / Z^2, where Z = sum |w|.
at::Tensor jacobian_sq(const Call& call, const Scores& scores,
                       const at::Tensor& raw, const at::Tensor& scale) {
  const at::Tensor d = raw_derivatives(call, scores) * scale;
  if (call.config.activation.divisor != Divisor::kSum)
    return d.square().sum({2, 3});
  const at::Tensor w = raw * scale, d_sq = d.square();
  const at::Tensor row = d_sq.sum(3) - 2 * (w.abs() * d_sq).sum(3) +
                         w.square().sum(3) * d_sq.sum(3);
  return row.sum(2);
}

// A packed batch, one sequence after the other.
at::Tensor by_sequence(const Call& call) {
  std::vector<at::Tensor> outputs;
  for (std::size_t b = 1; b < call.q_offsets.size(); ++b) {
    const auto rows_of = [b](const at::Tensor& t,
                             const std::vector<std::int64_t>& offsets) {
      return t.narrow(2, offsets[b - 1], offsets[b] - offsets[b - 1]);
    };
    Call one = call;
    one.q = rows_of(call.q, call.q_offsets);
    one.k = rows_of(call.k, call.k_offsets);
    one.v = rows_of(call.v, call.k_offsets);
    one.q_offsets = one.k_offsets = {};
    outputs.push_back(composed_attention(one));
  }
  return at::cat(outputs, 2);
}

// What the kernels multiply each weight [B, H, N, M] by: 0 or 1/(1 - p).
at::Tensor kept_weights(const Call& call, at::IntArrayRef size,
                        const at::TensorOptions& options) {
  const Dropout& dropout = call.config.dropout;
  const double factor = kept_factor(dropout);
  const at::Tensor kept = at::empty(size, at::kDouble);
  auto* const to = kept.data_ptr<double>();
  const std::int64_t heads = size[1], n = size[2], m = size[3];
  at::parallel_for(0, size[0] * heads * n, 1, [&](auto begin, auto end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t b = row / n / heads, h = row / n % heads;
      for (std::int64_t j = 0; j < m; ++j) {
        to[row * m + j] = is_dropped(dropout, b, h, row % n, j) ? 0 : factor;
      }
    }
  });
  return kept.to(options.dtype());
}

}  // namespace

at::Tensor widened(const at::Tensor& t, std::int64_t heads) {
  const at::Tensor wide = t.scalar_type() == at::kDouble ? t : t.to(at::kFloat);
  if (t.size(1) == heads || t.size(1) == 0) return wide;
  return wide.repeat_interleave(heads / t.size(1), 1);
}

at::Tensor for_each_example(const at::Tensor& t, std::int64_t batch) {
  if (!t.defined() || t.size(0) == 1 || t.size(0) == batch) return t;
  return t.repeat({batch / t.size(0), 1, 1, 1});
}

at::Tensor composed_weights(const Call& call) {
  const Scores scores = scores_of(call);
  const at::Tensor raw = raw_weights(call, scores);
  return raw * row_scale(call, scores, raw);
}

at::Tensor composed_attention(const Call& call) {
  if (!call.q_offsets.empty()) return by_sequence(call);
  at::Tensor weights = composed_weights(call);
  if (call.dropout > 0) weights = at::dropout(weights, call.dropout, true);
  if (call.config.dropout.p > 0)
    weights = weights * kept_weights(call, weights.sizes(), weights.options());
  return at::matmul(weights, widened(call.v, call.q.size(1)))
      .to(call.q.scalar_type());
}

at::Tensor composed_norms(const Call& call, const at::Tensor& o) {
  const at::NoGradGuard no_grad;
  Call wide = call;
  wide.q = call.q.to(at::kDouble);
  wide.k = call.k.to(at::kDouble);
  const Scores scores = scores_of(wide);
  const at::Tensor raw = raw_weights(wide, scores);
  const at::Tensor scale = row_scale(wide, scores, raw);
  const at::Tensor top = scores.s.numel() == 0
                             ? at::zeros({o.size(0), o.size(1)}, raw.options())
                             : scores.s.abs().amax({2, 3});
  return at::stack({(raw * scale).square().sum({2, 3}),
                    jacobian_sq(wide, scores, raw, scale), top,
                    at::isfinite(o).logical_not().sum({2, 3}).to(at::kDouble)},
                   2);
}

}  // namespace polyattn
