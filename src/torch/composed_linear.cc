#include "torch/composed_linear.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/features.h"
#include "torch/composed.h"

namespace polyattn {
namespace {

// Rows of a chunk of causal attention.
constexpr std::int64_t kChunk = 128;

// The polynomial whose features are needed: learned coefficients may be zero
// now and not later.
Activation support_of(const Call& call) {
  Activation polynomial = call.config.activation;
  const bool learned = call.coefficients.defined();
  if (learned) {
    polynomial.degree = static_cast<int>(call.coefficients.size(-1)) - 1;
  }
  for (std::size_t i = 0; i < polynomial.coefficient.size(); ++i) {
    const bool used = static_cast<int>(i) <= polynomial.degree &&
                      (learned || polynomial.coefficient[i] != 0);
    polynomial.coefficient[i] = used ? 1 : 0;
  }
  return polynomial;
}

// Where each feature finds its factors, and what it weighs.
struct Features {
  at::Tensor index;   // [P, R]: columns of x, or the column of ones behind it
  at::Tensor weight;  // [1 or H, 1, R]

  at::Tensor of(const at::Tensor& x) const {
    const at::Tensor padded = at::cat({x, at::ones_like(x.narrow(3, 0, 1))}, 3);
    at::Tensor product = padded.index_select(3, index[0]);
    for (std::int64_t p = 1; p < index.size(0); ++p) {
      product = product * padded.index_select(3, index[p]);
    }
    return product;
  }
};

at::Tensor coefficients_of(const Call& call, const at::TensorOptions& options) {
  if (call.coefficients.defined()) return call.coefficients.to(options);
  const auto& c = call.config.activation.coefficient;
  return at::tensor(std::vector<double>(c.begin(), c.end())).to(options);
}

Features features_of(const Call& call, const at::TensorOptions& options) {
  const Activation polynomial = support_of(call);
  const std::int64_t width = call.q.size(3);
  const std::int64_t rows = std::max(polynomial.degree, 1);
  std::vector<std::vector<std::int64_t>> index(static_cast<std::size_t>(rows));
  std::vector<std::int64_t> degree;
  std::vector<double> weight;
  FeatureCursor cursor(polynomial, width);
  const std::int64_t all = count_features(polynomial, width);
  for (FeatureRun run = cursor.next(all); run.count > 0;
       run = cursor.next(all)) {
    for (std::int64_t i = 0; i < run.count; ++i) {
      for (int p = 0; p < rows; ++p) {
        const auto at = static_cast<std::size_t>(p);
        const bool prefix = p + 1 < run.degree;
        index[at].push_back(prefix                ? run.prefix[at]
                            : p + 1 == run.degree ? run.first + i
                                                  : width);
      }
      degree.push_back(run.degree);
      weight.push_back(i == 0 ? run.first_weight : run.weight);
    }
  }
  std::vector<at::Tensor> columns;
  for (const auto& column : index) columns.push_back(at::tensor(column));
  const at::Device device = call.q.device();
  const at::Tensor c = coefficients_of(call, options)
                           .index_select(-1, at::tensor(degree).to(device));
  return {at::stack(columns).to(device),
          (at::tensor(weight).to(options) * c)
              .view({c.dim() == 2 ? c.size(0) : 1, 1, -1})};
}

// 1/divisor for rows that see n keys.
at::Tensor scale_of_rows(const Call& call, const at::Tensor& n) {
  switch (call.config.activation.divisor) {
    case Divisor::kSqrtN:
      return n.clamp_min(1).rsqrt();
    case Divisor::kN:
      return n.clamp_min(1).reciprocal();
    default:
      return at::ones_like(n);
  }
}

struct Sides {
  at::Tensor q, k, v;  // of [B, H, N or M, .], hidden keys zero
  at::Tensor seen;     // [1 or B, 1 or H, M, 1]: 1 for keys that are not hidden
};

Sides sides_of(const Call& call) {
  const std::int64_t heads = call.q.size(1);
  Sides sides{widened(call.q, heads) * *call.config.scale,
              widened(call.k, heads),
              widened(call.v, heads),
              {}};
  sides.seen = at::ones({1, 1, call.k.size(2), 1}, sides.v.options());
  if (call.mask.defined()) {
    const at::Tensor mask =
        for_each_example(call.mask, call.q.size(0)).transpose(2, 3);
    sides.seen = sides.seen * mask.to(sides.v.scalar_type());
    sides.k = sides.k.masked_fill(mask.logical_not(), 0);
    sides.v = sides.v.masked_fill(mask.logical_not(), 0);
  }
  return sides;
}

at::Tensor linear_full(const Call& call, const Sides& sides,
                       const Features& f) {
  const at::Tensor sums = at::matmul(f.of(sides.k).transpose(2, 3), sides.v);
  const at::Tensor n = sides.seen.sum(2, true);
  return at::matmul(f.of(sides.q) * f.weight, sums) * scale_of_rows(call, n);
}

at::Tensor linear_causal(const Call& call, const Sides& sides,
                         const Features& f) {
  const std::int64_t rows = sides.q.size(2), keys = sides.k.size(2);
  const std::int64_t shift =
      call.config.causal == Causal::kLast ? keys - rows : 0;
  const auto clip = [&](std::int64_t j) {
    return std::clamp<std::int64_t>(j, 0, keys);
  };
  // Keys that rows before the chunk saw already.
  at::Tensor sums =
      at::zeros({1, 1, f.weight.size(2), sides.v.size(3)}, sides.v.options());
  std::int64_t folded = 0;
  std::vector<at::Tensor> chunks;
  for (std::int64_t a = 0; a < rows; a += kChunk) {
    const std::int64_t b = std::min(a + kChunk, rows);
    const std::int64_t common = clip(a + shift + 1), last = clip(b + shift);
    const at::Tensor q = f.of(sides.q.narrow(2, a, b - a)) * f.weight;
    if (common > folded) {
      const at::Tensor k = f.of(sides.k.narrow(2, folded, common - folded));
      sums = sums + at::matmul(k.transpose(2, 3),
                               sides.v.narrow(2, folded, common - folded));
      folded = common;
    }
    at::Tensor o = at::matmul(q, sums);
    if (last > common) {
      const at::Tensor k = f.of(sides.k.narrow(2, common, last - common));
      const at::Tensor weights =
          at::matmul(q, k.transpose(2, 3)).tril(a + shift - common);
      o = o + at::matmul(weights, sides.v.narrow(2, common, last - common));
    }
    chunks.push_back(o);
  }
  const at::Tensor before = at::cat(
      {at::zeros_like(sides.seen.narrow(2, 0, 1)), sides.seen.cumsum(2)}, 2);
  const at::Tensor last =
      at::arange(1, rows + 1, call.q.options().dtype(at::kLong))
          .add(shift)
          .clamp(0, keys);
  return at::cat(chunks, 2) * scale_of_rows(call, before.index_select(2, last));
}

}  // namespace

std::string why_not_linear(const Call& call) {
  const Activation& a = call.config.activation;
  if (a.kind != ActivationKind::kPolynomial)
    return a.to_string() + " is not a polynomial";
  if (a.divisor == Divisor::kSum) return "its divisor is sum";
  if (call.dropout > 0) return "dropout needs each weight";
  if (call.config.window != Window{})
    return "a window shows each row other keys";
  if (call.bias.defined()) return "a bias differs by query and key";
  if (call.mask.defined() && call.mask.size(2) != 1)
    return "the mask differs by query";
  if (!call.q_offsets.empty()) return "the batch is packed";
  if (call.q.size(3) == 0 || call.k.size(1) == 0) return "there is no width";
  const std::int64_t features =
      count_features(support_of(call), call.q.size(3));
  if (features < 0 || features > (std::int64_t{1} << 24))
    return "there are too many features";
  return {};
}

bool is_faster_linear(const Call& call) {
  if (!why_not_linear(call).empty()) return false;
  const std::int64_t features =
      count_features(support_of(call), call.q.size(3));
  const std::int64_t ways = call.config.causal == Causal::kNone ? 2 : 4;
  return std::min(call.q.size(2), call.k.size(2)) > ways * features;
}

at::Tensor composed_linear(const Call& call) {
  const Sides sides = sides_of(call);
  const Features f = features_of(call, sides.v.options());
  return (call.config.causal == Causal::kNone ? linear_full(call, sides, f)
                                              : linear_causal(call, sides, f))
      .to(call.q.scalar_type());
}

}  // namespace polyattn
