#include "theory/gaussian_rows.h"

#include "theory/variance.h"

namespace polyattn::theory {
namespace {

// A or dA/dS.
struct GaussianNorm {
  const char* name;
  std::vector<double> SampledNorms::*values;
  Expectations::Function Expectations::*expected;
  double (*variance)(const Activation&, const Setting&);
};

constexpr GaussianNorm kGaussianNorms[] = {
    {"||A||", &SampledNorms::weight_sq, &Expectations::weight_sq,
     weight_sq_variance},
    {"||dA/dS||", &SampledNorms::jacobian_sq, &Expectations::jacobian_sq,
     jacobian_sq_variance}};

MeanOfSquares mean_of(const GaussianNorm& norm, const SampledNorms& sampled,
                      const Activation& activation, const Setting& setting,
                      const Expectations& expectations) {
  return {.values = sampled.*norm.values,
          .expected = (expectations.*norm.expected)(activation, setting),
          .variance = norm.variance(activation, setting),
          .rounding = kernel_rounding(activation.degree, setting.width)};
}

}  // namespace

void add_gaussian_rows(Claim& claim, const StudyOptions& options,
                       const std::vector<GaussianLength>& data,
                       const GaussianForm& form,
                       const Expectations& expectations) {
  std::vector<Row> exponents;
  for (const GaussianNorm& norm : kGaussianNorms) {
    for (std::size_t d = 0; d < options.degrees.size(); ++d) {
      const Activation activation = monomial(options.degrees[d], form.scaled);
      std::vector<LengthNorm> norms;
      Row row{.series = norm.name, .subject = activation.to_string()};
      Row exponent{.series = norm.name, .alone = true, .subject = row.subject};
      for (const GaussianLength& length : data) {
        const Setting setting{.tokens = length.tokens,
                              .width = options.width,
                              .causal = form.causal};
        const MeanOfSquares mean = mean_of(norm, (length.*form.norms)[d],
                                           activation, setting, expectations);
        row.tokens = length.tokens;
        judge_mean(row, mean);
        claim.rows.push_back(row);
        if (row.verdict == Verdict::kUndecided) continue;
        norms.push_back(length_norm(row, mean));
        exponent.samples += row.samples;
      }
      if (norms.size() < 2) continue;
      judge_exponent(exponent, norms);
      exponents.push_back(exponent);
    }
  }
  claim.rows.insert(claim.rows.end(), exponents.begin(), exponents.end());
}

}  // namespace polyattn::theory
