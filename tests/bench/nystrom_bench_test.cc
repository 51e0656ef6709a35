#include "bench/nystrom_bench.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/program.h"
#include "bench/torch_bench.h"

namespace polyattn::bench::nystrom_bench_test {
namespace {

const NystromStudy kStudy{
    .tokens = 512,
    .landmarks = 64,
    .width = 32,
    .heads = 6,
    .cases = {
        {.rows = "slow",
         .activation = "x^3/sqrt(N)",
         .start = "plain",
         .norm = 80,
         .condition = 1e4,
         .largest = 12.5,
         .best = 0.25,
         .inverses = {{"published", std::numeric_limits<double>::quiet_NaN(),
                       std::numeric_limits<double>::infinity()},
                      {"six steps", 0.03125, 0.5}}}}};

TEST(NystromBench, TextHasEveryFigure) {
  const std::string text = nystrom_text(kStudy);
  for (const char* part :
       {"N = 512, m = 64 landmarks, D = 32", "medians of 6 heads", "slow",
        "x^3/sqrt(N)", "plain", "80", "1e+04", "12.5", "0.25", "published",
        "not finite", "six steps", "0.0312", "0.5"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(NystromBench, JsonHasTheSame) {
  const auto json = nystrom_json(kStudy);
  EXPECT_EQ(json.at("landmarks"), 64);
  const auto& c = json.at("cases").at(0);
  EXPECT_EQ(c.at("condition"), 1e4);
  EXPECT_EQ(c.at("best"), 0.25);
  EXPECT_TRUE(c.at("inverses").at(0).at("error").is_null());
  EXPECT_EQ(c.at("inverses").at(1).at("residual"), 0.03125);
}

// What docs/models.md says of it.
TEST(NystromBench, PolynomialsNeedADivisorOfTheirOwn) {
  Options options;
  NystromStudy study;
  try {
    study = bench_nystrom(options);
  } catch (const base::UsageError&) {
    EXPECT_TRUE(default_capabilities().empty());  // built without torch
    return;
  }
  ASSERT_EQ(study.cases.size(), 12U);
  for (const NystromFigures& c : study.cases) {
    SCOPED_TRACE(c.rows + " " + c.activation + " " + c.start);
    const InverseFigures &published = c.inverses.at(0), &six = c.inverses.at(1),
                         &ten = c.inverses.at(2), &exact = c.inverses.at(3);
    EXPECT_LT(six.residual, 0.15);
    EXPECT_LT(ten.residual, six.residual);
    EXPECT_LT(exact.residual, 0.01);
    if (c.rows == "slow") {
      EXPECT_LT(six.error, 0.2);
      EXPECT_LT(exact.error, 0.2);
    }
    if (c.activation == "softmax") {
      EXPECT_NEAR(published.error, six.error, 0.05);
    } else if (c.rows == "independent") {
      EXPECT_GT(six.error, 0.8);
      EXPECT_GT(exact.error, six.error);
    } else if (c.activation == "x^3/sqrt(N)" && c.start == "plain") {
      EXPECT_GT(c.largest, 3);
      EXPECT_FALSE(published.error < 1);
    }
  }
}

}  // namespace
}  // namespace polyattn::bench::nystrom_bench_test
