#include "theory/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace polyattn::theory {
namespace {

// Seconds of one core of the day, for a bar that moves evenly.
constexpr double kNumberSeconds = 2e-8;   // a normal number
constexpr double kKernelSeconds = 2e-11;  // a multiply-add of the kernels
constexpr double kPlainSeconds = 2e-10;   // one in double

double gaussian_effort(const StudyOptions& o, std::int64_t tokens) {
  const auto n = static_cast<double>(tokens);
  const auto d = static_cast<double>(o.width);
  const auto cases = 1 + 2.5 * static_cast<double>(o.degrees.size());
  const auto samples = static_cast<double>(gaussian_samples(o, tokens));
  return samples * (2 * n * d * kNumberSeconds +
                    cases * n * n * (d + 20) * kKernelSeconds);
}

double projected_effort(const StudyOptions& o, std::int64_t tokens,
                        std::int64_t samples) {
  const auto n = static_cast<double>(tokens);
  const auto d = static_cast<double>(o.width);
  const auto degrees = static_cast<double>(o.degrees.back());
  return static_cast<double>(samples) *
         ((n + 2 * d) * d * kNumberSeconds +
          n * (n * (d + 6 * degrees) + 4 * d * d) * kPlainSeconds);
}

double softmax_effort(const StudyOptions& o) {
  double effort = 2;
  for (const std::int64_t tokens : o.lengths) {
    const auto n = static_cast<double>(tokens);
    effort += 3 * n * n * static_cast<double>(o.width) * kKernelSeconds;
  }
  return effort;
}

template <typename T>
void check_ascending(const std::vector<T>& values, T least, T most,
                     const char* name) {
  T previous = least - 1;
  for (const T value : values) {
    if (value > previous && value <= most) {
      previous = value;
      continue;
    }
    throw std::invalid_argument(
        fmt::format("[theory] {} must ascend from {} to {}: {} does not", name,
                    least, most, value));
  }
  if (values.empty()) {
    throw std::invalid_argument(fmt::format("[theory] no {}", name));
  }
}

}  // namespace

Study::Study(StudyOptions options, Parallel& parallel, Theory theory)
    : options_(std::move(options)),
      parallel_(parallel),
      theory_(std::move(theory)) {
  check_ascending(options_.degrees, 1, kMaxDegree, "degrees");
  check_ascending(options_.lengths, kLeastTokens, kMostTokens, "lengths");
  const auto check = [](std::int64_t value, std::int64_t least,
                        const char* name) {
    if (value >= least) return;
    throw std::invalid_argument(
        fmt::format("[theory] {} {} < {}", name, value, least));
  };
  check(options_.width, 1, "width");
  check(options_.samples.value_or(kLeastSamples), kLeastSamples, "samples");
}

std::vector<Step> Study::steps() {
  std::vector<Step> steps;
  steps.push_back({"bounds of softmax", softmax_effort(options_), [this] {
                     softmax_ =
                         softmax_claims(options_, theory_.bounds, parallel_);
                   }});
  add_gaussian_steps(steps);
  add_projected_steps(steps);
  return steps;
}

void Study::add_gaussian_steps(std::vector<Step>& steps) {
  for (const std::int64_t tokens : options_.lengths) {
    steps.push_back({fmt::format("Gaussian queries and keys, N = {}", tokens),
                     gaussian_effort(options_, tokens), [this, tokens] {
                       gaussian_.push_back(
                           measure_gaussian(options_, tokens, parallel_));
                     }});
  }
  steps.push_back({"causal attention", 1, [this] {
                     causal_ = {causal_claim(options_, gaussian_, parallel_,
                                             theory_.expectations)};
                   }});
}

void Study::add_projected_steps(std::vector<Step>& steps) {
  for (const std::int64_t tokens : projected_lengths(options_)) {
    const std::int64_t samples = projected_samples(options_, tokens);
    steps.push_back(
        {fmt::format("projections, N = {}", tokens),
         projected_effort(options_, tokens, samples), [this, tokens] {
           projected_.push_back(measure_projected(options_, tokens, parallel_));
         }});
  }
  for (const TokenVariant& variant : token_variants()) {
    steps.push_back({variant.name,
                     projected_effort(options_, variant_tokens(options_),
                                      variant_samples(options_)),
                     [this, &variant] {
                       variants_.push_back(
                           measure_variant(options_, variant, parallel_));
                     }});
  }
}

std::vector<Claim> Study::claims() const {
  std::vector<Claim> claims = softmax_;
  claims.push_back(gaussian_claim(options_, gaussian_, theory_.expectations));
  claims.push_back(projected_claim(options_, projected_, theory_.expectations));
  claims.insert(claims.end(), causal_.begin(), causal_.end());
  claims.push_back(typical_softmax(gaussian_));
  claims.push_back(other_tokens(options_, variants_));
  return claims;
}

std::int64_t chance_comparisons(const std::vector<Claim>& claims) {
  std::int64_t count = 0;
  for (const Claim& claim : claims) {
    if (claim.status == Status::kObservation) continue;
    count +=
        std::count_if(claim.rows.begin(), claim.rows.end(), [](const Row& row) {
          return row.interval.has_value() && row.verdict != Verdict::kUndecided;
        });
  }
  return count;
}

}  // namespace polyattn::theory
