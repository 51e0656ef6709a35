// The claims of the theory, measured and judged. Every judge takes what theory
// says as an argument, so that it can be seen to fail for a theory that is
// wrong.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "polyattn/parallel.h"
#include "theory/claim.h"
#include "theory/expectation.h"
#include "theory/projected.h"
#include "theory/sample.h"
#include "theory/softmax_bound.h"

namespace polyattn::theory {

inline constexpr std::int64_t kLeastTokens = 2;
inline constexpr std::int64_t kMostTokens = 262144;
inline constexpr std::int64_t kMostWidth = 1024;
// Fewer say nothing about their own spread.
inline constexpr std::int64_t kLeastSamples = 8;
inline constexpr std::int64_t kMostSamples = 1000000;

struct StudyOptions {
  std::vector<int> degrees{1, 2, 3, 4};  // ascending, each 1 .. kMaxDegree
  // N, ascending, each 2 or more.
  std::vector<std::int64_t> lengths{16,  32,   64,   128, 256,
                                    512, 1024, 2048, 4096};
  std::int64_t width = 64;  // D, and C of the projections
  // Matrices of each random setting and length; default: as many as fit into
  // about the same time at every length.
  std::optional<std::int64_t> samples = {};
  std::uint64_t seed = 1;
};

// "x^3" or "x^3/sqrt(N)".
Activation monomial(int degree, bool scaled);

// The lengths, each moved into that range, without repetition.
std::vector<std::int64_t> clipped(const std::vector<std::int64_t>& lengths,
                                  std::int64_t least, std::int64_t most);

// Bounds of softmax, by default those of softmax_bound.h.
struct SoftmaxBounds {
  std::function<double(std::int64_t)> norm = softmax_norm_bound;
  std::function<double(std::int64_t)> norm_minimum = softmax_norm_minimum;
  std::function<double(std::int64_t)> jacobian_paper =
      softmax_jacobian_paper_bound;
  std::function<double(std::int64_t)> jacobian = softmax_jacobian_bound;
};

// ||softmax(S)||_F, and then ||d softmax(S)/dS||_F.
std::vector<Claim> softmax_claims(const StudyOptions& options,
                                  const SoftmaxBounds& bounds,
                                  Parallel& parallel);

// Expected squared norms, by default those of expectation.h.
struct Expectations {
  using Function = std::function<double(const Activation&, const Setting&)>;
  Function weight_sq = expected_weight_sq;
  Function jacobian_sq = expected_jacobian_sq;
  Function query_sq = expected_query_gradient_sq;
  Function key_sq = expected_key_gradient_sq;
  Function input_sq = expected_input_gradient_sq;
};

// What was measured at one length with Gaussian Q and K. The same matrices
// serve the claims on full and causal attention and on softmax.
struct GaussianLength {
  std::int64_t tokens = 0;
  SampledNorms softmax = {};
  // [degrees] each
  std::vector<SampledNorms> plain = {}, scaled = {},
                            causal = {};  // x^p, x^p/sqrt(N), causal
};

std::int64_t gaussian_samples(const StudyOptions& options, std::int64_t tokens);
GaussianLength measure_gaussian(const StudyOptions& options,
                                std::int64_t tokens, Parallel& parallel);
Claim gaussian_claim(const StudyOptions& options,
                     const std::vector<GaussianLength>& data,
                     const Expectations& expectations = {});

// The setting of the paper: Q = X W_Q, K = X W_K, with C = D and projections
// that give queries and keys of variance 1. Another deviation multiplies every
// norm by a power of it, and changes no exponent.
struct ProjectedLength {
  std::int64_t tokens = 0;
  std::vector<std::vector<ProjectedNorms>> norms = {};  // [max degree][samples]
};

Setting projected_setting(const StudyOptions& options, std::int64_t tokens);

// Those of the options, moved into the range that this claim uses. Below it, a
// few matrices carry the mean; above it, nothing is gained, because the
// projections, which all tokens of a matrix share, make matrices differ as much
// at any length.
std::vector<std::int64_t> projected_lengths(const StudyOptions& options);
std::int64_t projected_samples(const StudyOptions& options,
                               std::int64_t tokens);
ProjectedLength measure_projected(const StudyOptions& options,
                                  std::int64_t tokens, Parallel& parallel);
Claim projected_claim(const StudyOptions& options,
                      const std::vector<ProjectedLength>& data,
                      const Expectations& expectations = {});

// The row form, 1/sqrt(i + 1) for row i. Also runs the kernels with other
// tokens in the second half of a sequence.
Claim causal_claim(const StudyOptions& options,
                   const std::vector<GaussianLength>& data, Parallel& parallel,
                   const Expectations& expectations = {});

// What theory does not cover: how far softmax stays below its bound, ...
Claim typical_softmax(const std::vector<GaussianLength>& data);

// ... and tokens that are neither independent nor Gaussian.
struct TokenVariant {
  const char* name;
  TokenModel model;
  Stream stream;
};

std::span<const TokenVariant> token_variants();
std::int64_t variant_tokens(const StudyOptions& options);
std::int64_t variant_samples(const StudyOptions& options);
ProjectedLength measure_variant(const StudyOptions& options,
                                const TokenVariant& variant,
                                Parallel& parallel);
// data: [token_variants()]
Claim other_tokens(const StudyOptions& options,
                   const std::vector<ProjectedLength>& data);

}  // namespace polyattn::theory
