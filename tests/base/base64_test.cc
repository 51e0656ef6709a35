#include "base/base64.h"

#include <gtest/gtest.h>

#include <string_view>

namespace polyattn::base {
namespace base64_test {

std::string encoded(std::string_view text) {
  return base64(
      {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

// The test vectors of RFC 4648, and bytes of every size.
TEST(Base64, IsThatOfTheStandard) {
  EXPECT_EQ(encoded(""), "");
  EXPECT_EQ(encoded("f"), "Zg==");
  EXPECT_EQ(encoded("fo"), "Zm8=");
  EXPECT_EQ(encoded("foo"), "Zm9v");
  EXPECT_EQ(encoded("foob"), "Zm9vYg==");
  EXPECT_EQ(encoded("fooba"), "Zm9vYmE=");
  EXPECT_EQ(encoded("foobar"), "Zm9vYmFy");
  EXPECT_EQ(encoded(std::string_view("\xff\xfe\x00\x80", 4)), "//4AgA==");
}

}  // namespace base64_test
}  // namespace polyattn::base
