// Quantiles against closed forms and printed tables.
#include "base/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

namespace polyattn::base {
namespace statistics_test {

TEST(StudentT, OneDegreeIsCauchy) {
  for (const double c : {0.01, 0.5, 0.9, 0.95, 0.99, 0.9999}) {
    const double expected = std::tan(M_PI * c / 2);
    EXPECT_NEAR(student_t(c, 1), expected, 1e-10 * expected) << c;
  }
}

TEST(StudentT, TwoAndFourDegreesHaveClosedForms) {
  for (const double c : {0.01, 0.5, 0.9, 0.95, 0.99, 0.9999}) {
    const double two = c * std::sqrt(2 / (1 - c * c));
    EXPECT_NEAR(student_t(c, 2), two, 1e-10 * two) << c;
    const double alpha = 1 - c * c;
    const double q =
        std::cos(std::acos(std::sqrt(alpha)) / 3) / std::sqrt(alpha);
    const double four = 2 * std::sqrt(q - 1);
    // q - 1 loses digits where c is small.
    EXPECT_NEAR(student_t(c, 4), four, 1e-8 * four + 1e-11) << c;
  }
}

TEST(StudentT, AgreesWithTables) {
  EXPECT_NEAR(student_t(0.95, 3), 3.182446305284263, 1e-9);
  EXPECT_NEAR(student_t(0.95, 5), 2.570581835636314, 1e-9);
  EXPECT_NEAR(student_t(0.95, 10), 2.228138851964939, 1e-9);
  EXPECT_NEAR(student_t(0.95, 30), 2.042272456301238, 1e-9);
  EXPECT_NEAR(student_t(0.99, 5), 4.032142983557536, 1e-9);
  EXPECT_NEAR(student_t(0.99, 9), 3.249835541592204, 1e-9);
  EXPECT_NEAR(student_t(0.90, 120), 1.657650898716413, 1e-6);
  // Towards the normal distribution.
  EXPECT_NEAR(student_t(0.95, 1000000), 1.959966568, 1e-6);
}

TEST(StudentT, RefusesNonsense) {
  for (const double bad : {0.0, 1.0, -0.5, 1.5, std::nan("")}) {
    EXPECT_THROW(student_t(bad, 3), std::invalid_argument) << bad;
  }
  EXPECT_THROW(student_t(0.95, 0), std::invalid_argument);
}

TEST(SampleOf, HasMeanAndDeviation) {
  EXPECT_EQ(sample_of({}).count, 0);
  EXPECT_EQ(sample_of({3}).mean, 3);
  EXPECT_EQ(sample_of({3}).deviation, 0);
  const Sample sample = sample_of({2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_EQ(sample.count, 8);
  EXPECT_EQ(sample.mean, 5);
  EXPECT_DOUBLE_EQ(sample.deviation, std::sqrt(32.0 / 7));
}

// Wilson's interval is p' +- h with p' = (p + z^2/2n)/(1 + z^2/n), and its ends
// solve (p - x)^2 = z^2 x (1 - x)/n.
TEST(SamplingError, IsHalfOfWilsonsInterval) {
  const double z2 = 1.959963984540054 * 1.959963984540054;
  for (const double p : {0.0, 0.1, 0.5, 0.871, 1.0}) {
    for (const int n : {10, 2000, 10000}) {
      const double h = sampling_error(p, n);
      const double centre = (p + z2 / (2 * n)) / (1 + z2 / n);
      for (const double x : {centre - h, centre + h}) {
        EXPECT_NEAR((p - x) * (p - x), z2 * x * (1 - x) / n, 1e-12);
      }
      EXPECT_GT(h, 0);
    }
  }
  EXPECT_NEAR(sampling_error(0.5, 10000), 0.0098, 1e-5);
}

}  // namespace statistics_test
}  // namespace polyattn::base
