#include "base/text_table.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace polyattn::base {
namespace text_table_test {

TEST(DisplayWidth, CountsCharactersNotBytes) {
  EXPECT_EQ(display_width(""), 0U);
  EXPECT_EQ(display_width("abc"), 3U);
  EXPECT_EQ(display_width("B·H ≥ 2³"), 8U);
}

TEST(DisplayWidth, ColoursTakeNoRoom) {
  EXPECT_EQ(display_width(coloured("yes", Colour::kGreen)), 3U);
  EXPECT_EQ(coloured("yes", Colour::kNone), "yes");
}

TEST(Shortened, CutsBetweenCharacters) {
  EXPECT_EQ(shortened("B·H=2", 2), "B·");
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("abc", 0), "");
}

TEST(TextTable, AlignsColumns) {
  TextTable table({{"case", Align::kLeft}, {"ms"}});
  table.add_row({"B·H", "1.0"});
  table.add_row({"longer", "100.0"});
  EXPECT_EQ(table.to_string(),
            "case       ms\n"
            "------  -----\n"
            "B·H       1.0\n"
            "longer  100.0\n");
}

TEST(TextTable, LeavesOutEmptyColumns) {
  TextTable table({{"a"}, {"b"}, {"c", Align::kLeft}});
  table.add_row({"1", "", "x"});
  table.add_row({"2", "", ""});
  EXPECT_EQ(table.to_string(), "a  c\n-  -\n1  x\n2\n");
}

TEST(TextTable, RefusesRowsOfAnotherWidth) {
  TextTable table({{"a"}, {"b"}});
  EXPECT_THROW(table.add_row({"1"}), std::invalid_argument);
}

}  // namespace text_table_test
}  // namespace polyattn::base
