#include "train/run/suggest.h"

#include <gtest/gtest.h>

#include <vector>

namespace polyattn::run {
namespace suggest_test {

TEST(EditDistance, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("abc", "abc"), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("flaw", "lawn"), 2U);
  EXPECT_EQ(edit_distance("trian", "train"), 1U);  // neighbours swapped
  EXPECT_EQ(edit_distance("ab", "ba"), 1U);
}

TEST(Nearest, KnowsWhenNothingIsNear) {
  const std::vector<std::string_view> known = {"lr", "batch", "steps"};
  EXPECT_EQ(nearest("lr", known), "lr");
  EXPECT_EQ(nearest("l", known), "lr");
  EXPECT_EQ(nearest("bacth", known), "batch");
  EXPECT_EQ(nearest("step", known), "steps");
  EXPECT_EQ(nearest("x", known), std::nullopt);
  EXPECT_EQ(nearest("xy", known), std::nullopt);
  EXPECT_EQ(nearest("epochs", known), std::nullopt);
  EXPECT_EQ(nearest("", known), std::nullopt);
  EXPECT_EQ(nearest(std::string(1000, 'l'), known), std::nullopt);
  EXPECT_EQ(nearest("lr", {}), std::nullopt);
}

}  // namespace suggest_test
}  // namespace polyattn::run
