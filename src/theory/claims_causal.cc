// Causal attention with the divisor sqrt(i + 1) of row i.
#include <cstring>

#include "polyattn/attention.h"
#include "theory/claims.h"
#include "theory/gaussian_rows.h"

namespace polyattn::theory {
namespace {

constexpr std::int64_t kMostChangedTokens = 2048;

// Queries, keys and values of a sequence. [N, D] each
struct Sequence {
  std::vector<float> q, k, v;
};

std::vector<float> causal_output(const Sequence& s, const Activation& a,
                                 const Extents& size, Parallel& parallel) {
  std::vector<float> o(s.q.size());
  const AttentionInputs inputs{.q = view(s.q.data(), size),
                               .k = view(s.k.data(), size),
                               .v = view(s.v.data(), size)};
  const AttentionConfig config{.activation = a, .causal = Causal::kFirst};
  std::vector<std::byte> workspace(
      attention_forward_workspace(inputs, config, parallel.workers()));
  attention_forward(inputs, config, {.o = view(o.data(), size)}, workspace,
                    parallel);
  return o;
}

// How many of the first N/2 rows of the output have other bits when all later
// queries, keys and values are others.
std::int64_t changed_rows(const StudyOptions& options, std::int64_t tokens,
                          const Activation& activation, Parallel& parallel) {
  const Extents size{1, 1, tokens, options.width};
  const std::int64_t elements = tokens * options.width;
  const std::int64_t kept = tokens / 2;
  Random random({options.seed, Stream::kCausal, tokens, 0});
  Sequence sequence{normal_floats(elements, random),
                    normal_floats(elements, random),
                    normal_floats(elements, random)};
  const auto before = causal_output(sequence, activation, size, parallel);
  for (std::vector<float>* part : {&sequence.q, &sequence.k, &sequence.v}) {
    const auto fresh = normal_floats(elements - kept * options.width, random);
    std::copy(fresh.begin(), fresh.end(), part->begin() + kept * options.width);
  }
  const auto after = causal_output(sequence, activation, size, parallel);
  std::int64_t changed = 0;
  for (std::int64_t i = 0; i < kept; ++i) {
    const std::size_t at = static_cast<std::size_t>(i * options.width);
    const std::size_t bytes =
        static_cast<std::size_t>(options.width) * sizeof(float);
    if (std::memcmp(&before[at], &after[at], bytes) != 0) ++changed;
  }
  return changed;
}

}  // namespace

Claim causal_claim(const StudyOptions& options,
                   const std::vector<GaussianLength>& data, Parallel& parallel,
                   const Expectations& expectations) {
  Claim claim{
      .id = "causal-row-form",
      .statement =
          "Causal attention, x^p divided by sqrt(i + 1) in row i: the expected "
          "squares are known exactly, the norms grow as sqrt(N), and no token "
          "changes a row before it.",
      .computed =
          "As above for Gaussian queries and keys; and the first half of the "
          "rows of the output, bit by bit, before and after all tokens of the "
          "second half are replaced."};
  add_gaussian_rows(
      claim, options, data,
      {.norms = &GaussianLength::causal, .scaled = true, .causal = true},
      expectations);
  for (const std::int64_t tokens :
       clipped(options.lengths, 2, kMostChangedTokens)) {
    for (const int degree : options.degrees) {
      const Activation activation = monomial(degree, true);
      Row row{.series = "changed past rows",
              .subject = activation.to_string(),
              .tokens = tokens,
              .samples = 1};
      row.measured = static_cast<double>(
          changed_rows(options, tokens, activation, parallel));
      judge_equality(row, 0);
      claim.rows.push_back(row);
    }
  }
  return claim;
}

}  // namespace polyattn::theory
