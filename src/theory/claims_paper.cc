// The setting of the paper, with gradients with respect to Q, K and X.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "theory/claims.h"

namespace polyattn::theory {
namespace {

constexpr std::int64_t kLeastProjectedTokens = 32;
constexpr std::int64_t kMostProjectedTokens = 512;
constexpr double kPlainRounding = 1e-10;  // sums of doubles
// Where the exponent has reached its limit to twelve digits.
constexpr std::int64_t kEndlessTokens = std::int64_t{1} << 40;

struct ProjectedNorm {
  const char* name;
  double ProjectedNorms::*value;
  Expectations::Function Expectations::*expected;
};

constexpr ProjectedNorm kProjectedNorms[] = {
    {"||A||", &ProjectedNorms::weight_sq, &Expectations::weight_sq},
    {"||dA/dS||", &ProjectedNorms::jacobian_sq, &Expectations::jacobian_sq},
    {"||dA/dQ||", &ProjectedNorms::query_sq, &Expectations::query_sq},
    {"||dA/dK||", &ProjectedNorms::key_sq, &Expectations::key_sq},
    {"||dA/dX||", &ProjectedNorms::input_sq, &Expectations::input_sq}};

// The divisor of full attention is the same for all entries of a matrix.
std::vector<double> values_of(const ProjectedLength& length,
                              const ProjectedNorm& norm,
                              const Activation& activation) {
  const double scale = activation.row_scale(static_cast<double>(length.tokens));
  std::vector<double> values;
  for (const ProjectedNorms& norms :
       length.norms[static_cast<std::size_t>(activation.degree - 1)]) {
    values.push_back(norms.*norm.value * scale * scale);
  }
  return values;
}

struct ProjectedCase {
  const ProjectedNorm& norm;
  Activation activation;
  const StudyOptions& options;
  const Expectations& expectations;

  double expected(std::int64_t tokens) const {
    return (expectations.*norm.expected)(activation,
                                         projected_setting(options, tokens));
  }
  const char* form() const {
    return activation.divisor == Divisor::kOne ? "x^p" : "x^p/sqrt(N)";
  }
};

// Rows for each length, and the exponent through those that are decided.
void add_lengths(Claim& claim, const std::vector<ProjectedLength>& data,
                 const ProjectedCase& c, std::vector<Row>& exponents) {
  Row row{.series = c.norm.name, .subject = c.activation.to_string()};
  Row exponent{.series = fmt::format("{}, {}", c.norm.name, c.form()),
               .subject = row.subject};
  std::vector<LengthNorm> norms;
  for (const ProjectedLength& length : data) {
    const std::vector<double> values = values_of(length, c.norm, c.activation);
    const MeanOfSquares mean{.values = values,
                             .expected = c.expected(length.tokens),
                             .rounding = kPlainRounding};
    row.tokens = length.tokens;
    judge_mean(row, mean);
    claim.rows.push_back(row);
    if (row.verdict == Verdict::kUndecided) continue;
    norms.push_back(length_norm(row, mean));
    exponent.samples += row.samples;
  }
  if (norms.size() < 2) return;
  judge_exponent(exponent, norms);
  exponents.push_back(exponent);
}

// From the exact formula alone: where the exponent goes to.
Row limit_row(const ProjectedCase& c) {
  Row row{.series = fmt::format("limit, {}", c.form()),
          .subject = c.norm.name,
          .tokens = kEndlessTokens,
          .tokens_to = 2 * kEndlessTokens,
          .expected = c.activation.divisor == Divisor::kOne ? 1 : 0.5};
  const double ratio = c.expected(row.tokens_to) / c.expected(row.tokens);
  row.measured = std::log2(ratio) / 2;
  judge_equality(row, 1e-6);
  return row;
}

}  // namespace

Setting projected_setting(const StudyOptions& options, std::int64_t tokens) {
  return {.tokens = tokens,
          .width = options.width,
          .source = Source::kProjections,
          .channels = options.width,
          .projection_std = 1 / std::sqrt(static_cast<double>(options.width))};
}

std::vector<std::int64_t> projected_lengths(const StudyOptions& options) {
  return clipped(options.lengths, kLeastProjectedTokens, kMostProjectedTokens);
}

std::int64_t projected_samples(const StudyOptions& options,
                               std::int64_t tokens) {
  if (options.samples) return *options.samples;
  return std::clamp((std::int64_t{1} << 26) / (tokens * tokens),
                    std::int64_t{256}, std::int64_t{4096});
}

ProjectedLength measure_projected(const StudyOptions& options,
                                  std::int64_t tokens, Parallel& parallel) {
  return {
      .tokens = tokens,
      .norms = sample_projected({.setting = projected_setting(options, tokens),
                                 .max_degree = options.degrees.back(),
                                 .samples = projected_samples(options, tokens),
                                 .seed = options.seed,
                                 .stream = Stream::kProjections},
                                parallel)};
}

Claim projected_claim(const StudyOptions& options,
                      const std::vector<ProjectedLength>& data,
                      const Expectations& expectations) {
  Claim claim{
      .id = "projected-norms",
      .statement =
          "The paper's setting, scores X W_Q W_K^T X^T / sqrt(D) with "
          "independent Gaussian X, W_Q, W_K: the norms of A and of its "
          "gradients are O(N) for x^p and O(sqrt(N)) for x^p/sqrt(N), and "
          "their expected squares are known exactly.",
      .computed =
          "Root mean squares over matrices, by plain loops in double, against "
          "the root of the exact expectation; slopes of log norm against log N "
          "against the slope of the exact curve between the same lengths.",
      .notes = {fmt::format(
          "Lengths below {0} and above {1} are replaced by these: there, a few "
          "matrices carry the mean, or nothing is gained. The limit is that of "
          "the exact formula, at N = 2^40.",
          kLeastProjectedTokens, kMostProjectedTokens)}};
  std::vector<Row> exponents, limits;
  for (const ProjectedNorm& norm : kProjectedNorms) {
    for (const bool scaled : {false, true}) {
      for (const int degree : options.degrees) {
        const ProjectedCase c{norm, monomial(degree, scaled), options,
                              expectations};
        add_lengths(claim, data, c, exponents);
        limits.push_back(limit_row(c));
      }
    }
  }
  claim.rows.insert(claim.rows.end(), exponents.begin(), exponents.end());
  claim.rows.insert(claim.rows.end(), limits.begin(), limits.end());
  return claim;
}

}  // namespace polyattn::theory
