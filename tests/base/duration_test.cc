#include "base/duration.h"

#include <gtest/gtest.h>

#include "base/message.h"
#include "base/program.h"
#include "support/message_of.h"

namespace polyattn::base {
namespace duration_test {

std::string refusal(const char* text) {
  return test::message_of<UsageError>([&] { parse_duration(text); });
}

TEST(Duration, IsReadAsPeopleWriteIt) {
  EXPECT_EQ(parse_duration("90"), 90);
  EXPECT_EQ(parse_duration("2.5m"), 150);
  EXPECT_EQ(parse_duration("1h30m"), 5400);
  EXPECT_EQ(parse_duration("8760h"), kMaxDurationSeconds);
}

TEST(Duration, BeyondAYearIsRefused) {
  for (const char* text :
       {"1e300h", "1e308h", "8760h1s", "31536001", "1e18s", "5000h5000h"}) {
    EXPECT_EQ(refusal(text),
              in_quotes(text) + " is too long: at most 8760h, a year");
  }
  for (const char* text : {"", "h", "-1h", "0", "nan", "inf", "1e999h", "1x"}) {
    EXPECT_EQ(refusal(text),
              in_quotes(text) + " is no duration: write 90s, 5m or 1h30m");
  }
}

TEST(Duration, TextOfAnyNumber) {
  EXPECT_EQ(duration_text(12.4), "12 s");
  EXPECT_EQ(duration_text(245), "4 min 05 s");
  EXPECT_EQ(duration_text(3725), "1 h 02 min");
}

}  // namespace duration_test
}  // namespace polyattn::base
