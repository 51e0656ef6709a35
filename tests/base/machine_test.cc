#include "base/machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

namespace polyattn::base {
namespace machine_test {

TEST(Machine, HasANameWithCores) {
  const std::string name = machine_name();
  EXPECT_NE(name.find(", "), std::string::npos) << name;
  EXPECT_TRUE(name.ends_with(" core") || name.ends_with(" cores")) << name;
}

TEST(Machine, TellsTheTimeInUtc) {
  std::string shape = utc_now();
  std::replace_if(
      shape.begin(), shape.end(),
      [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; },
      '9');
  EXPECT_EQ(shape, "9999-99-99T99:99:99Z");
}

TEST(Machine, CountsMemoryThatIsTouched) {
  constexpr std::int64_t kBytes = 64 << 20;
  const PeakMemory memory;
  if (!memory.peak()) GTEST_SKIP() << "/proc does not tell";
  const std::vector<char> touched(kBytes, 1);
  // Somebody may look at it, or a compiler would leave it out.
  [[maybe_unused]] static const char* volatile seen;
  seen = touched.data();
  // The kernel counts in batches of pages, hence not to the byte.
  EXPECT_GE(*memory.growth(), kBytes / 2) << touched.size();
  EXPECT_GE(*memory.peak(), *memory.growth());
}

}  // namespace machine_test
}  // namespace polyattn::base
