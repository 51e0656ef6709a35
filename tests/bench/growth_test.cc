// The exponent of a growth, from times and lengths.
#include <gtest/gtest.h>

#include <stdexcept>

#include "bench/step_growth.h"

namespace polyattn::bench::growth_test {
namespace {

TEST(GrowthExponent, IsTheSlopeOfLogarithms) {
  EXPECT_NEAR(growth_exponent({1, 2, 4}, {3, 12, 48}), 2, 1e-12);
  EXPECT_NEAR(growth_exponent({10, 1000}, {5, 5}), 0, 1e-12);
  EXPECT_THROW(growth_exponent({1}, {1}), std::invalid_argument);
  EXPECT_THROW(growth_exponent({1, 2}, {1}), std::invalid_argument);
  EXPECT_THROW(growth_exponent({1, 2}, {1, 0}), std::invalid_argument);
}

}  // namespace
}  // namespace polyattn::bench::growth_test
