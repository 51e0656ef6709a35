#include "base/message.h"

#include <gtest/gtest.h>

namespace polyattn::base {
namespace message_test {

TEST(Grouped, SetsThousandsApart) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1 000");
  EXPECT_EQ(grouped(2500000), "2 500 000");
  EXPECT_EQ(grouped(18446744073709551615U), "18 446 744 073 709 551 615");
}

}  // namespace message_test
}  // namespace polyattn::base
