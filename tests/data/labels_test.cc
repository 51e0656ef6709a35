#include "data/labels.h"

#include <gtest/gtest.h>

#include "data/support.h"

namespace polyattn::data::labels_test {
namespace {

using test::error_of;
using test::has;

std::string refusal(std::string_view json) {
  return error_of([&] { parse_labels(json, {4, 10}, "labels.json"); });
}

TEST(Labels, AreAFlatArrayOfIntegers) {
  EXPECT_EQ(parse_labels(" [ 0, 9,\n3 ] ", {4, 10}, "labels.json"),
            (std::vector<std::int32_t>{0, 9, 3}));
  EXPECT_TRUE(parse_labels("[]", {4, 10}, "labels.json").empty());
}

TEST(Labels, OutOfRangeAreRefused) {
  EXPECT_TRUE(has(refusal("[1,10]"), "label 1 is 10, expected is 0 to 9"));
  EXPECT_TRUE(has(refusal("[-1]"), "label 0 is -1"));
  EXPECT_TRUE(has(refusal("[18446744073709551615]"), "18446744073709551615"));
  EXPECT_TRUE(has(refusal("[99999999999999999999999]"), "expected is an"));
}

TEST(Labels, OtherThingsAreRefused) {
  for (const char* json :
       {"[1.5]", "[\"1\"]", "[null]", "[true]", "[[1]]", "[{}]"}) {
    EXPECT_TRUE(has(refusal(json), "label 0 is ")) << json;
  }
  for (const char* json : {"7", "-7", "null", "\"text\"", "{\"a\": [1]}"}) {
    EXPECT_TRUE(has(refusal(json), "not an array")) << json;
  }
  for (const char* json : {"", "[", "[1,", "[1 2]", "[1]]", "[1] x", "[01]"}) {
    EXPECT_TRUE(has(refusal(json), "not JSON")) << json;
  }
}

TEST(Labels, TooManyAreRefused) {
  EXPECT_TRUE(has(refusal("[1,1,1,1,1]"), "more than 4 labels"));
}

TEST(Labels, DeepNestingEndsAtOnce) {
  const std::string deep(1000000, '[');
  EXPECT_TRUE(has(refusal(deep), "label 0 is an array"));
}

}  // namespace
}  // namespace polyattn::data::labels_test
