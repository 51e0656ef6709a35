// Every claim holds against the theory, and does not against a wrong one.
#include "theory/claims.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace polyattn::theory::claims_test {
namespace {

StudyOptions small() {
  StudyOptions options;
  options.degrees = {1, 2};
  options.lengths = {16, 64};
  options.width = 16;
  options.samples = 100;
  return options;
}

std::set<std::string> failed_series(const Claim& claim) {
  std::set<std::string> series;
  for (const Row& row : claim.rows) {
    if (row.verdict == Verdict::kFails) series.insert(row.series);
  }
  return series;
}

bool has(const std::set<std::string>& set, const std::string& name) {
  return set.contains(name);
}

TEST(SoftmaxClaims, HoldAndReachTheirBounds) {
  SerialParallel serial;
  const auto claims = softmax_claims(small(), {}, serial);
  ASSERT_EQ(claims.size(), 2U);
  for (const Claim& claim : claims) {
    EXPECT_TRUE(holds(claim)) << claim.id;
    EXPECT_EQ(claim.status, Status::kTheorem);
    const bool reached =
        std::any_of(claim.rows.begin(), claim.rows.end(), [](const Row& row) {
          return row.relation == Relation::kEqual && row.tokens == 64 &&
                 row.measured > 3.9;
        });
    EXPECT_TRUE(reached) << claim.id;
  }
}

TEST(SoftmaxClaims, DoNotHoldForBoundsThatAreTooTight) {
  SerialParallel serial;
  SoftmaxBounds wrong;
  wrong.norm = [](std::int64_t n) { return 0.99 * softmax_norm_bound(n); };
  wrong.jacobian = [](std::int64_t n) {
    return 0.99 * softmax_jacobian_bound(n);
  };
  wrong.norm_minimum = [](std::int64_t) { return 1.01; };
  const auto claims = softmax_claims(small(), wrong, serial);
  const auto norm = failed_series(claims[0]);
  EXPECT_TRUE(has(norm, "one-hot rows"));
  EXPECT_TRUE(has(norm, "search by gradient ascent"));
  EXPECT_TRUE(has(norm, "smallest of all"));
  EXPECT_FALSE(has(norm, "two-way ties"));
  const auto jacobian = failed_series(claims[1]);
  EXPECT_TRUE(has(jacobian, "two-way ties"));
  EXPECT_TRUE(has(jacobian, "search by gradient ascent"));
  EXPECT_FALSE(has(jacobian, "all, against 2 sqrt(N)"));
}

class GaussianClaims : public testing::Test {
 protected:
  void SetUp() override {
    for (const std::int64_t tokens : options_.lengths) {
      gaussian_.push_back(measure_gaussian(options_, tokens, serial_));
      projected_.push_back(measure_projected(options_, tokens, serial_));
    }
  }

  // Expectations off by a factor that depends on N.
  static Expectations wrong(double factor, double exponent) {
    Expectations e;
    const auto off = [=](double value, const Setting& s) {
      return factor * value * std::pow(static_cast<double>(s.tokens), exponent);
    };
    e.weight_sq = [=](const Activation& a, const Setting& s) {
      return off(expected_weight_sq(a, s), s);
    };
    e.input_sq = [=](const Activation& a, const Setting& s) {
      return off(expected_input_gradient_sq(a, s), s);
    };
    return e;
  }

  SerialParallel serial_;
  StudyOptions options_ = small();
  std::vector<GaussianLength> gaussian_;
  std::vector<ProjectedLength> projected_;
};

TEST_F(GaussianClaims, HoldForTheExactExpectations) {
  for (const Claim& claim : {gaussian_claim(options_, gaussian_),
                             projected_claim(options_, projected_),
                             causal_claim(options_, gaussian_, serial_)}) {
    EXPECT_TRUE(holds(claim)) << claim.id;
    const auto exponents =
        std::count_if(claim.rows.begin(), claim.rows.end(),
                      [](const Row& row) { return row.tokens_to > 0; });
    EXPECT_GE(exponents, 4) << claim.id;
  }
}

TEST_F(GaussianClaims, DoNotHoldForWrongExpectations) {
  const Expectations twice = wrong(2, 0);
  for (const Claim& claim :
       {gaussian_claim(options_, gaussian_, twice),
        projected_claim(options_, projected_, twice),
        causal_claim(options_, gaussian_, serial_, twice)}) {
    const auto failed = failed_series(claim);
    EXPECT_TRUE(has(failed, "||A||")) << claim.id;
    EXPECT_FALSE(has(failed, "||dA/dS||")) << claim.id;
    EXPECT_FALSE(has(failed, "changed past rows"));
  }
  EXPECT_TRUE(has(failed_series(projected_claim(options_, projected_, twice)),
                  "||dA/dX||"));
}

// E||A||^2 as if it grew as N^2.4: the exponent must be off by 0.2.
TEST_F(GaussianClaims, DoNotHoldForAWrongExponent) {
  const Claim claim =
      gaussian_claim(options_, gaussian_, wrong(std::pow(32, -0.4), 0.4));
  int failed = 0;
  for (const Row& row : claim.rows) {
    if (row.tokens_to == 0 || row.series != "||A||") continue;
    EXPECT_NEAR(row.expected - row.measured, 0.2, 0.05) << row.subject;
    if (row.verdict == Verdict::kFails) ++failed;
  }
  EXPECT_EQ(failed, 4);  // x, x^2, with and without sqrt(N)
}

TEST_F(GaussianClaims, OfOneLengthHaveNoExponent) {
  gaussian_.resize(1);
  for (const Row& row : gaussian_claim(options_, gaussian_).rows) {
    EXPECT_EQ(row.tokens_to, 0);
  }
}

TEST_F(GaussianClaims, ObservationsCannotFail) {
  options_.samples = 20;
  std::vector<ProjectedLength> variants;
  for (const TokenVariant& variant : token_variants()) {
    variants.push_back(measure_variant(options_, variant, serial_));
  }
  for (const Claim& claim :
       {typical_softmax(gaussian_), other_tokens(options_, variants)}) {
    EXPECT_EQ(claim.status, Status::kObservation);
    EXPECT_FALSE(claim.rows.empty());
    for (const Row& row : claim.rows) {
      EXPECT_EQ(row.verdict, Verdict::kObserved);
      EXPECT_GT(row.measured, 0);
    }
  }
}

TEST(Lengths, AreMovedIntoARangeOnce) {
  EXPECT_EQ(clipped({2, 8, 16, 64, 128}, 8, 64),
            (std::vector<std::int64_t>{8, 16, 64}));
}

TEST(Samples, FollowTheOption) {
  StudyOptions options;
  EXPECT_GT(gaussian_samples(options, 16), gaussian_samples(options, 4096));
  EXPECT_GE(gaussian_samples(options, kMostTokens), 2);
  options.samples = 77;
  EXPECT_EQ(gaussian_samples(options, 16), 77);
  EXPECT_EQ(projected_samples(options, 64), 77);
  EXPECT_EQ(variant_samples(options), 77);
}

}  // namespace
}  // namespace polyattn::theory::claims_test
