// What is parsed, what is refused, and what it costs.
#include "base/json_text.h"

#include <gtest/gtest.h>

#include <string>

#include "support/message_of.h"

namespace polyattn::base {
namespace json_text_test {

std::string message_of(const std::string& text) {
  return test::message_of<JsonError>([&] { parse_json(text); });
}

std::string repeated(int count, const std::string& text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

std::string object_of(int members) {
  std::string text = "{";
  for (int i = 0; i < members; ++i) {
    text += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":[]";
  }
  return text + "}";
}

TEST(ParseJson, KeepsTheOrderOfMembers) {
  const std::string text = R"({"b":[1,-2.5,"x"],"a":{"z":null,"c":true}})";
  EXPECT_EQ(printed(parse_json(text)), text);
}

TEST(ParseJson, SaysWhereItIsNone) {
  EXPECT_EQ(message_of(""), "no JSON at byte 1");
  EXPECT_EQ(message_of(R"({"a":})"), "no JSON at byte 6");
  EXPECT_EQ(message_of("]["), "no JSON at byte 1");
  EXPECT_EQ(message_of(R"("a)"), "no JSON at byte 3");
  EXPECT_EQ(message_of("\"\\"), "no JSON at byte 3");
  EXPECT_EQ(message_of("1e999"), "no JSON: a number is out of range");
}

TEST(ParseJson, LimitsTheDepth) {
  const auto nested = [](int depth) {
    return repeated(depth / 2, "[{\"a\":") + "0" + repeated(depth / 2, "}]");
  };
  EXPECT_EQ(message_of(nested(16)), "");
  EXPECT_EQ(message_of("[" + nested(16) + "]"),
            "values are nested more than 16 deep");
  EXPECT_EQ(message_of(repeated(1 << 20, "[")),
            "values are nested more than 16 deep");
  // Closed ones are not counted, nor is text.
  EXPECT_EQ(message_of("[" + repeated(100, "[[]],") + "0]"), "");
  EXPECT_EQ(message_of("\"" + repeated(100, "[\\\"{") + "\""), "");
}

TEST(ParseJson, LimitsTheMembersOfAnObject) {
  EXPECT_EQ(parse_json(object_of(1000)).size(), 1000U);
  EXPECT_EQ(message_of(object_of(1001)),
            "an object has more than 1000 members");
  EXPECT_EQ(message_of("[" + object_of(900) + "," + object_of(900) + "]"), "");
  EXPECT_EQ(message_of("{\"a\":\"" + repeated(2000, ":") + "\"}"), "");
}

// A walk through all siblings at the end of each object would take 2^40 steps,
// which no run of the tests lives to see.
TEST(ParseJson, TakesALongListInLinearTime) {
  constexpr int kNumbers = 1 << 22, kObjects = 1 << 18;
  const std::string text =
      "[" + repeated(kNumbers, "0,") + repeated(kObjects, "{},") + "{}]";
  EXPECT_EQ(parse_json(text).size(), kNumbers + kObjects + 1U);
}

}  // namespace json_text_test
}  // namespace polyattn::base
