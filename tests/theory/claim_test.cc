// Judges: right theory passes, wrong theory does not, and a sample that says
// nothing decides nothing.
#include "theory/claim.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "theory/random.h"

namespace polyattn::theory::claim_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<double> squares(int count) {
  Random random({2, Stream::kScores, count, 0});
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& value : values) value = std::pow(random.normal(), 2);
  return values;
}

Row bounded(Relation relation, double expected, double measured) {
  Row row;
  row.relation = relation;
  row.expected = expected;
  row.measured = measured;
  judge_bound(row, 1e-6);
  return row;
}

TEST(Judge, BoundsHoldOnTheirSideAndToRounding) {
  EXPECT_EQ(bounded(Relation::kAtMost, 2, 2.000001).verdict, Verdict::kHolds);
  EXPECT_EQ(bounded(Relation::kAtMost, 2, 2.00001).verdict, Verdict::kFails);
  EXPECT_EQ(bounded(Relation::kAtLeast, 2, 1.999999).verdict, Verdict::kHolds);
  EXPECT_EQ(bounded(Relation::kAtLeast, 2, 1.99).verdict, Verdict::kFails);
  EXPECT_EQ(bounded(Relation::kAtMost, 0, 0).verdict, Verdict::kHolds);
  EXPECT_EQ(bounded(Relation::kAtMost, 2, kNan).verdict, Verdict::kFails);
  EXPECT_EQ(bounded(Relation::kAtMost, 2, kInf).verdict, Verdict::kFails);
}

TEST(Judge, EqualityAllowsADistance) {
  Row row;
  row.expected = 3;
  row.measured = 3.1;
  judge_equality(row, 0.2);
  EXPECT_EQ(row.verdict, Verdict::kHolds);
  EXPECT_NEAR(row.strain, 0.5, 1e-12);
  judge_equality(row, 0.05);
  EXPECT_EQ(row.verdict, Verdict::kFails);
  row.measured = 3;
  judge_equality(row, 0);
  EXPECT_EQ(row.verdict, Verdict::kHolds);
}

void expect_judged(MeanOfSquares mean, const std::vector<double>& wrongs) {
  Row row;
  judge_mean(row, mean);
  EXPECT_EQ(row.verdict, Verdict::kHolds);
  EXPECT_EQ(row.samples, static_cast<std::int64_t>(mean.values.size()));
  EXPECT_DOUBLE_EQ(row.expected, std::sqrt(mean.expected));
  ASSERT_TRUE(row.interval);
  EXPECT_TRUE(row.interval->contains(row.measured));
  for (const double wrong : wrongs) {
    mean.expected = wrong;
    judge_mean(row, mean);
    EXPECT_EQ(row.verdict, Verdict::kFails) << wrong;
    EXPECT_GT(row.strain, 1);
  }
}

// A squared normal number has mean 1 and variance 2.
TEST(Judge, MeansAgreeWithTheRightExpectationOnly) {
  const std::vector<double> values = squares(4000);
  expect_judged({.values = values, .expected = 1}, {0.5, 1.5});
  expect_judged({.values = values, .expected = 1, .variance = 2}, {0.5, 1.5});
}

TEST(Judge, FewMatricesDecideIfEachIsAnAverageItself) {
  std::vector<double> values = squares(20);
  Row row;
  judge_mean(row, {.values = values, .expected = 1, .variance = 2});
  EXPECT_EQ(row.verdict, Verdict::kUndecided);
  for (double& value : values) value = 1 + 0.01 * (value - 1);
  expect_judged({.values = values, .expected = 1, .variance = 2e-4},
                {0.95, 1.05});
  // Without the variance they are too few.
  judge_mean(row, {.values = values, .expected = 1});
  EXPECT_EQ(row.verdict, Verdict::kUndecided);
}

TEST(Judge, MeansMayBeOffByRounding) {
  const std::vector<double> values(100, 1.001);
  Row row;
  judge_mean(
      row, {.values = values, .expected = 1, .variance = 0, .rounding = 1e-2});
  EXPECT_EQ(row.verdict, Verdict::kHolds);
  judge_mean(
      row, {.values = values, .expected = 1, .variance = 0, .rounding = 1e-4});
  EXPECT_EQ(row.verdict, Verdict::kFails);
}

TEST(Judge, AMeanThatOneMatrixCarriesIsUndecided) {
  std::vector<double> values(500, 1);
  for (std::size_t i = 0; i < values.size(); i += 2) values[i] = 1.1;
  values[7] = 1e5;
  Row row;
  judge_mean(row, {.values = values, .expected = 1});
  EXPECT_EQ(row.verdict, Verdict::kUndecided);
  // A known variance that allows for it decides.
  judge_mean(row, {.values = values, .expected = 1, .variance = 1});
  EXPECT_EQ(row.verdict, Verdict::kHolds);
}

TEST(Judge, AMeanThatIsNotFiniteFails) {
  for (const double bad : {kInf, kNan}) {
    std::vector<double> values(100, 1);
    values[5] = bad;
    Row row;
    judge_mean(row, {.values = values, .expected = 1, .variance = 1});
    EXPECT_EQ(row.verdict, Verdict::kFails);
    const std::vector<LengthNorm> norms{{8, bad, 0.1, 1}, {16, 2, 0.1, 2}};
    judge_exponent(row, norms);
    EXPECT_EQ(row.verdict, Verdict::kFails);
  }
}

TEST(Judge, ExponentsAgreeWithTheRightOneOnly) {
  std::vector<LengthNorm> norms;
  for (const double n : {16.0, 64.0, 256.0, 1024.0}) {
    norms.push_back({n, std::sqrt(n), 1e-3, std::sqrt(n)});
  }
  Row row;
  judge_exponent(row, norms);
  EXPECT_EQ(row.verdict, Verdict::kHolds);
  EXPECT_EQ(row.tokens, 16);
  EXPECT_EQ(row.tokens_to, 1024);
  EXPECT_NEAR(row.measured, 0.5, 1e-12);
  for (LengthNorm& norm : norms) norm.expected = norm.tokens;
  judge_exponent(row, norms);
  EXPECT_EQ(row.verdict, Verdict::kFails);
  EXPECT_NEAR(row.expected, 1, 1e-12);
}

TEST(Claims, HoldUnlessARowFails) {
  Claim claim;
  Row row;
  for (const Verdict verdict :
       {Verdict::kHolds, Verdict::kUndecided, Verdict::kObserved}) {
    row.verdict = verdict;
    claim.rows.push_back(row);
  }
  EXPECT_TRUE(holds(claim));
  claim.rows[1].verdict = Verdict::kFails;
  EXPECT_FALSE(holds(claim));
}

}  // namespace
}  // namespace polyattn::theory::claim_test
