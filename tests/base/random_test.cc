// The numbers, which must not change: published runs rest on them.
#include "base/random.h"

#include <gtest/gtest.h>

namespace polyattn::base {
namespace random_test {

TEST(Random, IntegersAreThoseOfSplitMix) {
  Random random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317U);
  EXPECT_EQ(random.next(), 3203168211198807973U);
  EXPECT_EQ(random.next(), 9817491932198370423U);
  EXPECT_EQ(Random(1234567).below(1000), 350U);
}

TEST(Random, UniformsDifferByTheirEnds) {
  Random a(3);
  Random b(3);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(a.uniform() + 0x1p-53, b.positive_uniform());
  }
}

TEST(Random, SingleNormalsAreEveryOther) {
  Random a(3);
  Random b(3);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(a.normal(), b.single_normal());
    a.normal();
  }
}

}  // namespace random_test
}  // namespace polyattn::base
