// Rows are drawn, not learned: independent normal numbers, of which a
// landmark's mean has little left, and rows that change slowly, as those of a
// text or a picture do, where each number is 0.99 of the one before and noise.
// The inverse is computed in f32, as in training, and judged in f64.
#include "bench/nystrom_bench.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/linalg_svdvals.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <utility>
#include <vector>

#include "nn/pseudo_inverse.h"
#include "torch/call.h"
#include "torch/composed.h"

namespace polyattn::bench {
namespace {

constexpr std::int64_t kHeads = 6;
constexpr std::int64_t kTokens = 512;
constexpr std::int64_t kLandmarks = 64;
constexpr std::int64_t kWidth = 32;
constexpr double kSlow = 0.99;
constexpr double kStartFactor = 0.3;  // of model.start_factor

constexpr const char* kActivations[] = {"softmax", "x^2/sqrt(N)", "x^3/sqrt(N)",
                                        "x^2/sum"};

double median_of(const torch::Tensor& values) {
  return std::get<0>(values.flatten().sort())[values.numel() / 2]
      .item<double>();
}

torch::Tensor norm_of(const torch::Tensor& matrices) {
  return matrices.norm(2, {-2, -1});
}

// [1, H, N, D], of variance 1.
torch::Tensor draw_rows(double kept, at::Generator generator) {
  const auto noise =
      torch::randn({1, kHeads, kTokens, kWidth}, std::move(generator),
                   torch::dtype(torch::kDouble));
  std::vector<torch::Tensor> rows{noise.select(2, 0)};
  for (std::int64_t i = 1; i < kTokens; ++i) {
    rows.push_back(kept * rows.back() +
                   std::sqrt(1 - kept * kept) * noise.select(2, i));
  }
  return torch::stack(rows, 2);
}

torch::Tensor weights(const torch::Tensor& q, const torch::Tensor& k,
                      const std::string& activation) {
  return composed_weights(
      make_call(q, k, k, AttentionOptions().activation(activation)));
}

torch::Tensor landmarks_of(const torch::Tensor& rows) {
  return rows.unflatten(2, {kLandmarks, kTokens / kLandmarks}).mean(3);
}

// What the scores are multiplied by for the matched start, the same for all
// heads. Below 1, where the norm grows with the gain.
double matched_gain(const torch::Tensor& q, const torch::Tensor& k,
                    const std::string& activation) {
  const auto is_too_large = [&](double log_gain) {
    const torch::Tensor scaled = q * std::exp(log_gain);
    return median_of(norm_of(weights(scaled, k, activation))) >
           kStartFactor * median_of(norm_of(weights(scaled, k, "softmax")));
  };
  double low = -8, high = 0;
  if (!is_too_large(high) || is_too_large(low)) return 1;
  while (high - low > 1e-3) {
    const double middle = (low + high) / 2;
    (is_too_large(middle) ? high : low) = middle;
  }
  return std::exp(low);
}

// Divided by the largest column sum alone, with its sign, over all heads.
torch::Tensor published_inverse(const torch::Tensor& a) {
  const auto one = torch::eye(a.size(-1), a.options());
  torch::Tensor z = a.transpose(-2, -1) / a.sum(-2).max();
  for (int i = 0; i < 6; ++i) {
    const torch::Tensor az = a.matmul(z);
    z = 0.25 *
        z.matmul(13 * one - az.matmul(15 * one - az.matmul(7 * one - az)));
  }
  return z;
}

struct Matrices {
  torch::Tensor f, a, b, full;
};

InverseFigures judge(const char* name, const torch::Tensor& inverse,
                     const Matrices& m) {
  const torch::Tensor z = inverse.to(torch::kDouble);
  const auto relative = [](const torch::Tensor& difference,
                           const torch::Tensor& of) {
    return median_of(norm_of(difference) / norm_of(of));
  };
  return {name, relative(m.a.matmul(z).matmul(m.a) - m.a, m.a),
          relative(m.f.matmul(z).matmul(m.b) - m.full, m.full)};
}

NystromFigures figures_of(const torch::Tensor& q, const torch::Tensor& k,
                          const std::string& activation) {
  const torch::Tensor q_marks = landmarks_of(q), k_marks = landmarks_of(k);
  const Matrices m{weights(q, k_marks, activation),
                   weights(q_marks, k_marks, activation),
                   weights(q_marks, k, activation), weights(q, k, activation)};
  const torch::Tensor of_a = at::linalg_svdvals(m.a),
                      square = at::linalg_svdvals(m.full).square();
  NystromFigures figures;
  figures.activation = activation;
  figures.norm = median_of(norm_of(m.full));
  figures.condition = median_of(of_a.select(-1, 0) / of_a.select(-1, -1));
  figures.largest = median_of(of_a.select(-1, 0).square() / m.a.sum(-2).max());
  figures.best =
      median_of((square.narrow(-1, kLandmarks, kTokens - kLandmarks).sum(-1) /
                 square.sum(-1))
                    .sqrt());
  const torch::Tensor a = m.a.to(torch::kFloat);
  const nn::NystromOptions options;
  figures.inverses = {
      judge("published", published_inverse(a), m),
      judge("six steps", nn::pseudo_inverse(a, options), m),
      judge("ten steps",
            nn::pseudo_inverse(a, nn::NystromOptions(options).iterations(10)),
            m),
      judge("singular values",
            nn::pseudo_inverse(a, nn::NystromOptions(options).inverse("exact")),
            m)};
  return figures;
}

}  // namespace

NystromStudy bench_nystrom(const Options& options) {
  const torch::NoGradGuard no_grad;
  auto generator = at::make_generator<at::CPUGeneratorImpl>(options.seed);
  NystromStudy study{kTokens, kLandmarks, kWidth, kHeads, {}};
  for (const double kept : {0.0, kSlow}) {
    const auto q = draw_rows(kept, generator), k = draw_rows(kept, generator);
    for (const std::string activation : kActivations) {
      const double matched = matched_gain(q, k, activation);
      for (const bool plain : {true, false}) {
        // No gain brings a norm there, or nothing is to be brought.
        if (!plain && matched == 1) continue;
        study.cases.push_back(
            figures_of(plain ? q : q * matched, k, activation));
        study.cases.back().rows = kept == 0 ? "independent" : "slow";
        study.cases.back().start = plain ? "plain" : "matched";
      }
    }
  }
  return study;
}

}  // namespace polyattn::bench
