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

// Stoline and Ury, "Tables of the studentized maximum modulus distribution",
// Technometrics 21 (1979), and Hahn and Hendrickson (Biometrika 58, 1971).
TEST(MaximumModulus, AgreesWithTables) {
  const double kKnown = std::numeric_limits<double>::infinity();
  EXPECT_NEAR(maximum_modulus(0.95, 2, 5), 3.091, 6e-4);
  EXPECT_NEAR(maximum_modulus(0.95, 3, 5), 3.399, 6e-4);
  EXPECT_NEAR(maximum_modulus(0.95, 5, 5), 3.789, 6e-4);
  EXPECT_NEAR(maximum_modulus(0.95, 3, 10), 2.829, 6e-4);
  EXPECT_NEAR(maximum_modulus(0.95, 10, 20), 3.114, 6e-4);
  EXPECT_NEAR(maximum_modulus(0.95, 3, kKnown), 2.388, 6e-4);
  EXPECT_NEAR(maximum_modulus(0.95, 5, 1e6), 2.569, 6e-4);
}

TEST(MaximumModulus, OfOneIsStudents) {
  for (const int degrees : {1, 2, 3, 4, 7, 20, 1000}) {
    for (const double c : {0.5, 0.95, 0.999}) {
      const double expected = student_t(c, degrees);
      EXPECT_NEAR(maximum_modulus(c, 1, degrees), expected, 1e-8 * expected)
          << c << " " << degrees;
    }
  }
}

// Two sided t of Dunnett's with correlation 1/2 (Biometrics 20, 1964), which is
// the smaller for every number of comparisons, and Bonferroni's the larger.
TEST(MaximumModulus, LiesBetweenDunnettAndBonferroni) {
  struct Row {
    int count;
    double degrees, dunnett;
  };
  for (const Row& row : {Row{2, 5, 3.03}, Row{3, 5, 3.29}, Row{4, 10, 2.81},
                         Row{2, 20, 2.38}, Row{5, 20, 2.70}}) {
    const double ours = maximum_modulus(0.95, row.count, row.degrees);
    EXPECT_GT(ours, row.dunnett - 0.005);
    EXPECT_LT(ours, 1.08 * row.dunnett);
    EXPECT_LT(ours,
              student_t(1 - 0.05 / row.count, static_cast<int>(row.degrees)));
  }
}

TEST(MaximumModulus, RefusesNonsense) {
  for (const double bad : {0.0, 1.0, std::nan("")}) {
    EXPECT_THROW(maximum_modulus(bad, 2, 3), std::invalid_argument) << bad;
  }
  EXPECT_THROW(maximum_modulus(0.95, 0, 3), std::invalid_argument);
  EXPECT_THROW(maximum_modulus(0.95, 2, 0), std::invalid_argument);
  EXPECT_THROW(maximum_modulus(0.95, 2, std::nan("")), std::invalid_argument);
}

// Fisher's tables; with one degree above it is the square of Student's t.
TEST(VarianceRatioTail, AgreesWithTables) {
  EXPECT_NEAR(variance_ratio_tail(6.944, 2, 4), 0.05, 1e-4);
  EXPECT_NEAR(variance_ratio_tail(3.708, 3, 10), 0.05, 1e-4);
  EXPECT_NEAR(variance_ratio_tail(13.277, 4, 4), 0.01403, 1e-5);
  const double t = student_t(0.99, 7);
  EXPECT_NEAR(variance_ratio_tail(t * t, 1, 7), 0.01, 1e-12);
  EXPECT_EQ(variance_ratio_tail(0, 3, 3), 1);
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
      const double h = sampling_error(p, n, 1);
      const double centre = (p + z2 / (2 * n)) / (1 + z2 / n);
      for (const double x : {centre - h, centre + h}) {
        EXPECT_NEAR((p - x) * (p - x), z2 * x * (1 - x) / n, 1e-12);
      }
      EXPECT_GT(h, 0);
    }
  }
  EXPECT_NEAR(sampling_error(0.5, 10000, 1), 0.0098, 1e-5);
  // 2.569 instead of 1.960 standard errors.
  EXPECT_NEAR(sampling_error(0.5, 10000, 5), 0.0098 * 2.569 / 1.960, 1e-5);
}

}  // namespace statistics_test
}  // namespace polyattn::base
