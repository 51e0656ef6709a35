// The bounds of softmax, held against families of matrices of scores.
#include <cmath>
#include <span>

#include "theory/claims.h"
#include "theory/softmax_families.h"

namespace polyattn::theory {
namespace {

constexpr std::int64_t kMostDifferenceTokens = 6;
constexpr std::int64_t kFirstDifferenceSample = 1000;  // others are taken

Row bound_row(const Family& family, const Extremes& e, Relation relation) {
  return {.series = family.name,
          .subject = family.name,
          .tokens = e.tokens,
          .samples = e.samples,
          .relation = relation};
}

void add_reached(Claim& claim, const Family& family, double Extremes::*measured,
                 const std::function<double(std::int64_t)>& expected) {
  for (const Extremes& e : family.lengths) {
    Row row = bound_row(family, e, Relation::kEqual);
    row.series += ": reached";
    row.expected = expected(e.tokens);
    row.measured = e.*measured;
    judge_equality(row, family.rounding * row.expected);
    claim.rows.push_back(row);
  }
}

Claim norm_claim(const std::vector<Family>& families,
                 const SoftmaxBounds& bounds) {
  Claim claim{.id = "softmax-norm",
              .statement =
                  "For every N x N matrix of scores S, "
                  "1 <= ||softmax(S)||_F <= sqrt(N); uniform rows reach the "
                  "one, one-hot rows, to rounding, the other.",
              .computed =
                  "The largest norm of families of matrices, and the smallest. "
                  "One-hot rows and ties are decided by 800; Gaussian scores "
                  "have temperatures 1/16, 1 and 16; samples of a search are "
                  "evaluations."};
  add_reached(claim, families[kOneHotFamily], &Extremes::largest, bounds.norm);
  add_reached(claim, families[kUniformFamily], &Extremes::smallest,
              bounds.norm_minimum);
  std::vector<Row> smallest;
  for (const Family& family : families) {
    for (const Extremes& e : family.lengths) {
      Row most = bound_row(family, e, Relation::kAtMost);
      most.expected = bounds.norm(e.tokens);
      most.measured = e.largest;
      judge_bound(most, family.rounding);
      claim.rows.push_back(most);
      if (!std::isfinite(e.smallest)) continue;
      Row least = bound_row(family, e, Relation::kAtLeast);
      least.series = "smallest of all";
      least.expected = bounds.norm_minimum(e.tokens);
      least.measured = e.smallest;
      judge_bound(least, family.rounding);
      smallest.push_back(least);
    }
  }
  claim.rows.insert(claim.rows.end(), smallest.begin(), smallest.end());
  return claim;
}

// Central differences of step h = 2^-17 err by h^2 / 6 and by 2^-53 / h in each
// of the N^3 entries of the Jacobian that are not zero.
double difference_error(std::int64_t tokens) {
  constexpr double kEach = 4e-11;
  return kEach * std::pow(static_cast<double>(tokens), 1.5);
}

void add_differences(Claim& claim, std::uint64_t seed) {
  for (std::int64_t n = 2; n <= kMostDifferenceTokens; ++n) {
    for (int sample = 0; sample < 8; ++sample) {
      Random random(
          {seed, Stream::kScores, n, kFirstDifferenceSample + sample});
      const double scale = std::pow(10, 2 * random.positive_uniform() - 1);
      std::vector<double> scores(static_cast<std::size_t>(n * n));
      for (double& score : scores) score = scale * random.normal();
      double formula = 0;
      for (std::size_t i = 0; i < scores.size();
           i += static_cast<std::size_t>(n)) {
        formula += softmax_row_jacobian_sq(
            std::span(scores).subspan(i, static_cast<std::size_t>(n)));
      }
      Row row{.series = "whole Jacobian by differences",
              .subject = "random scores",
              .tokens = n,
              .samples = 1,
              .expected = std::sqrt(formula)};
      row.measured = std::sqrt(softmax_jacobian_sq_by_differences(scores, n));
      judge_equality(row, difference_error(n));
      claim.rows.push_back(row);
    }
  }
}

Claim jacobian_claim(const std::vector<Family>& families,
                     const SoftmaxBounds& bounds, std::uint64_t seed) {
  Claim claim{.id = "softmax-gradient",
              .statement =
                  "For every N x N matrix of scores S, ||d softmax(S)/dS||_F "
                  "<= 2 sqrt(N) (the paper), and even <= sqrt(N)/2, which "
                  "two-way ties reach to rounding.",
              .computed =
                  "The largest norm of the same families, by the formula for "
                  "a row; and that formula against the whole N^2 x N^2 "
                  "Jacobian by differences."};
  add_reached(claim, families[kTiesFamily], &Extremes::largest_jacobian,
              bounds.jacobian);
  add_differences(claim, seed);
  std::vector<Row> papers;
  for (const Family& family : families) {
    for (const Extremes& e : family.lengths) {
      Row tight = bound_row(family, e, Relation::kAtMost);
      tight.expected = bounds.jacobian(e.tokens);
      tight.measured = e.largest_jacobian;
      judge_bound(tight, family.rounding);
      claim.rows.push_back(tight);
      Row paper = tight;
      paper.series = "all, against 2 sqrt(N)";
      paper.expected = bounds.jacobian_paper(e.tokens);
      judge_bound(paper, family.rounding);
      papers.push_back(paper);
    }
  }
  claim.rows.insert(claim.rows.end(), papers.begin(), papers.end());
  return claim;
}

}  // namespace

std::vector<Claim> softmax_claims(const StudyOptions& options,
                                  const SoftmaxBounds& bounds,
                                  Parallel& parallel) {
  const std::vector<Family> families = softmax_families(options, parallel);
  return {norm_claim(families, bounds),
          jacobian_claim(families, bounds, options.seed)};
}

}  // namespace polyattn::theory
