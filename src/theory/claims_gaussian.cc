// Polynomials of Gaussian scores: exact expectations against the kernels.
#include <algorithm>

#include "theory/claims.h"
#include "theory/gaussian_rows.h"

namespace polyattn::theory {

Activation monomial(int degree, bool scaled) {
  Activation a{.kind = ActivationKind::kPolynomial,
               .divisor = scaled ? Divisor::kSqrtN : Divisor::kOne,
               .degree = degree};
  a.coefficient[static_cast<std::size_t>(degree)] = 1;
  return a;
}

std::vector<std::int64_t> clipped(const std::vector<std::int64_t>& lengths,
                                  std::int64_t least, std::int64_t most) {
  std::vector<std::int64_t> result;
  result.reserve(lengths.size());
  for (const std::int64_t length : lengths) {
    result.push_back(std::clamp(length, least, most));
  }
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

// About 2^26 scores a length. Long matrices need few draws, because each is an
// average over many rows, and the variance is known.
std::int64_t gaussian_samples(const StudyOptions& options,
                              std::int64_t tokens) {
  if (options.samples) return *options.samples;
  const std::int64_t least = tokens <= 4096 ? 8 : 2;
  return std::clamp((std::int64_t{1} << 26) / (tokens * tokens), least,
                    std::int64_t{16384});
}

GaussianLength measure_gaussian(const StudyOptions& options,
                                std::int64_t tokens, Parallel& parallel) {
  SampleRequest request{.tokens = tokens,
                        .width = options.width,
                        .samples = gaussian_samples(options, tokens),
                        .seed = options.seed,
                        .stream = Stream::kQueriesKeys,
                        .cases = {{Activation::parse("softmax")}}};
  for (const int degree : options.degrees) {
    request.cases.push_back({monomial(degree, false)});
    request.cases.push_back({monomial(degree, true)});
    request.cases.push_back({monomial(degree, true), true});
  }
  std::vector<SampledNorms> norms = sample_norms(request, parallel);
  GaussianLength length;
  length.tokens = tokens;
  length.softmax = std::move(norms[0]);
  for (std::size_t at = 1; at < norms.size(); at += 3) {
    length.plain.push_back(std::move(norms[at]));
    length.scaled.push_back(std::move(norms[at + 1]));
    length.causal.push_back(std::move(norms[at + 2]));
  }
  return length;
}

Claim gaussian_claim(const StudyOptions& options,
                     const std::vector<GaussianLength>& data,
                     const Expectations& expectations) {
  Claim claim{
      .id = "gaussian-norms",
      .statement =
          "Queries and keys with independent N(0, 1) entries: E||A||_F^2 and "
          "E||dA/dS||_F^2 are known exactly; the norms grow as N for x^p, and "
          "as sqrt(N) for x^p/sqrt(N).",
      .computed =
          "Root mean squares over matrices, from the statistics of the f32 "
          "kernels, against the root of the exact expectation; slopes of log "
          "norm against log N."};
  add_gaussian_rows(claim, options, data, {.norms = &GaussianLength::plain},
                    expectations);
  add_gaussian_rows(claim, options, data,
                    {.norms = &GaussianLength::scaled, .scaled = true},
                    expectations);
  return claim;
}

}  // namespace polyattn::theory
