#include "base/openblas.h"

#include <gtest/gtest.h>

namespace polyattn::base::openblas_test {

TEST(OpenBlas, IsToldItsCoreWhereItDoesNotKnowTheProcessor) {
  const auto core = [](const char* found, const char* target) {
    return better_openblas_core(std::string("OpenBLAS 0.3.21, ") + found,
                                target);
  };
  EXPECT_EQ(core("Prescott", "avx3"), "SkylakeX");
  EXPECT_EQ(core("Prescott", "avx3_dl"), "SkylakeX");
  EXPECT_EQ(core("Prescott", "avx2"), "Haswell");
  EXPECT_EQ(core("Prescott", "sse4"), "");
  EXPECT_EQ(core("Zen", "avx2"), "");
  EXPECT_EQ(better_openblas_core("", "avx2"), "");
}

// This program has none.
TEST(OpenBlas, MayBeAbsent) { EXPECT_EQ(openblas_name(), ""); }

}  // namespace polyattn::base::openblas_test
