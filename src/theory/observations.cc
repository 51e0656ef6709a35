// Where the theory stops: measured, but with nothing to be held against.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "theory/claims.h"

namespace polyattn::theory {
namespace {

constexpr std::int64_t kMostVariantTokens = 256;
constexpr std::int64_t kVariantSamples = 400;

std::vector<double> roots(const std::vector<double>& squares) {
  std::vector<double> result;
  result.reserve(squares.size());
  for (const double square : squares) result.push_back(std::sqrt(square));
  return result;
}

// Medians, since tails may be so heavy that no mean exists: that of a squared
// norm does not with Student's t of 3 degrees of freedom, at any degree.
void observe(Row& row, const std::vector<double>& norms) {
  const Median median = median_of(norms, kShownTail);
  row.samples = static_cast<std::int64_t>(norms.size());
  row.measured = median.value;
  row.interval = median.interval;
  row.verdict = Verdict::kObserved;
}

}  // namespace

Claim typical_softmax(const std::vector<GaussianLength>& data) {
  Claim claim{.id = "typical-softmax",
              .statement =
                  "The bounds of softmax are those of the worst matrix. For "
                  "Gaussian queries and keys softmax stays far below them, and "
                  "hardly grows with N.",
              .status = Status::kObservation,
              .computed =
                  "Medians over matrices, beside the bounds sqrt(N) and "
                  "sqrt(N)/2."};
  for (const GaussianLength& length : data) {
    Row row{.series = "||softmax(S)||",
            .alone = &length == &data.front() || &length == &data.back(),
            .subject = "softmax",
            .tokens = length.tokens,
            .expected = softmax_norm_bound(length.tokens)};
    observe(row, roots(length.softmax.weight_sq));
    claim.rows.push_back(row);
    row.series = "||d softmax(S)/dS||";
    row.expected = softmax_jacobian_bound(length.tokens);
    observe(row, roots(length.softmax.jacobian_sq));
    claim.rows.push_back(row);
  }
  return claim;
}

std::span<const TokenVariant> token_variants() {
  static constexpr TokenVariant kVariants[] = {
      {"independent Gaussian tokens", {}, Stream::kProjections},
      {"correlated tokens, rho = 0.1", {0.1, false}, Stream::kCorrelated},
      {"correlated tokens, rho = 0.5", {0.5, false}, Stream::kCorrelated},
      {"heavy tails, Student's t(3)", {0, true}, Stream::kHeavyTails}};
  return kVariants;
}

std::int64_t variant_tokens(const StudyOptions& options) {
  return std::min(options.lengths.back(), kMostVariantTokens);
}

std::int64_t variant_samples(const StudyOptions& options) {
  return options.samples.value_or(kVariantSamples);
}

ProjectedLength measure_variant(const StudyOptions& options,
                                const TokenVariant& variant,
                                Parallel& parallel) {
  const std::int64_t tokens = variant_tokens(options);
  return {
      .tokens = tokens,
      .norms = sample_projected({.setting = projected_setting(options, tokens),
                                 .max_degree = options.degrees.back(),
                                 .samples = variant_samples(options),
                                 .seed = options.seed,
                                 .stream = variant.stream,
                                 .model = variant.model},
                                parallel)};
}

Claim other_tokens(const StudyOptions& options,
                   const std::vector<ProjectedLength>& data) {
  Claim claim{.id = "other-tokens",
              .statement =
                  "Nothing is proven for tokens that resemble each other, "
                  "x_i = sqrt(1 - rho) g_i + sqrt(rho) c, or whose entries "
                  "have heavy tails. The norms can be far from those of "
                  "independent Gaussian tokens.",
              .status = Status::kObservation,
              .computed =
                  "Medians of ||A||_F over matrices in the paper's setting, "
                  "beside the root of the Gaussian expectation."};
  for (std::size_t v = 0; v < data.size(); ++v) {
    for (const int degree : options.degrees) {
      const Activation activation = monomial(degree, true);
      const std::int64_t tokens = data[v].tokens;
      Row row{.series = token_variants()[v].name,
              .alone = true,
              .subject = activation.to_string(),
              .tokens = tokens,
              .expected = std::sqrt(expected_weight_sq(
                  activation, projected_setting(options, tokens)))};
      std::vector<double> norms;
      for (const ProjectedNorms& n :
           data[v].norms[static_cast<std::size_t>(degree - 1)]) {
        norms.push_back(std::sqrt(n.weight_sq / static_cast<double>(tokens)));
      }
      observe(row, norms);
      claim.rows.push_back(row);
    }
  }
  return claim;
}

}  // namespace polyattn::theory
