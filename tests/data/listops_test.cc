// ListOps: values and texts of expressions.
#include "data/listops.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "data/support.h"

namespace polyattn::data {
namespace listops_test {

using test::error_of;

std::vector<std::uint8_t> tokens_of(std::string_view text) {
  std::vector<std::uint8_t> tokens;
  parse_listops(text, tokens);
  return tokens;
}

std::int32_t value_of(std::string_view text) {
  std::vector<std::uint8_t> tokens;
  return parse_listops(text, tokens);
}

TEST(ListOps, HasTheValuesWorkedOutByHand) {
  EXPECT_EQ(value_of("7"), 7);
  EXPECT_EQ(value_of("[MIN 4 3 9 ]"), 3);
  EXPECT_EQ(value_of("[MAX 4 3 9 ]"), 9);
  EXPECT_EQ(value_of("[MED 9 0 3 ]"), 3);
  EXPECT_EQ(value_of("[MED 6 3 ]"), 4);  // 4.5
  EXPECT_EQ(value_of("[MED 9 1 8 2 ]"), 5);
  EXPECT_EQ(value_of("[MED 0 9 9 9 ]"), 9);
  EXPECT_EQ(value_of("[MED 1 0 ]"), 0);
  EXPECT_EQ(value_of("[SM 9 9 9 ]"), 7);
  EXPECT_EQ(value_of("[SM 4 6 ]"), 0);
  EXPECT_EQ(value_of("[MED 8 ]"), 8);
  EXPECT_EQ(value_of("[MAX 2 9 [MIN 4 7 ] 0 ]"), 9);
  EXPECT_EQ(value_of("[SM [SM 1 2 3 ] [MAX 4 [MED 5 6 7 ] ] [MIN 9 8 ] ]"), 0);
}

TEST(ListOps, WritesParenthesesAsLongRangeArena) {
  const auto text = [](std::string_view plain) {
    return listops_text(tokens_of(plain));
  };
  EXPECT_EQ(text("5"), "5");
  EXPECT_EQ(text("[MAX 4 3 ]"), "( ( ( [MAX 4 ) 3 ) ] )");
  EXPECT_EQ(text("[SM [MIN 1 2 ] 3 [MED 4 ] ]"),
            "( ( ( ( [SM ( ( ( [MIN 1 ) 2 ) ] ) ) 3 ) ( ( [MED 4 ) ] ) ) ] )");
}

TEST(ListOps, TokensAreNumbered) {
  EXPECT_EQ(tokens_of("[MIN 0 [MAX 1 9 ] [MED 5 ] [SM 2 ] ]"),
            (std::vector<std::uint8_t>{11, 1, 12, 2, 10, 15, 13, 6, 15, 14, 3,
                                       15, 15}));
  EXPECT_EQ(kListOpsVocabulary, 16);
}

TEST(ListOps, RefusesWhatIsNoExpression) {
  const auto message = [](std::string_view text) {
    std::vector<std::uint8_t> tokens = {1, 2};
    const std::string why = error_of([&] { parse_listops(text, tokens); });
    EXPECT_EQ(tokens.size(), 2U);
    return why;
  };
  const std::string words =
      " is no token of ListOps (0 to 9, [MIN, [MAX, [MED, [SM, ], parentheses)";
  EXPECT_EQ(message(""), "column 1: \"\"" + words);
  EXPECT_EQ(message("[MAX 1  2 ]"), "column 8: \"\"" + words);
  EXPECT_EQ(message("[MAX 1 2 ] "), "column 12: \"\"" + words);
  EXPECT_EQ(message("[MAX 10 2 ]"), "column 6: \"10\"" + words);
  EXPECT_EQ(message("[FIRST 1 ]"), "column 1: \"[FIRST\"" + words);
  EXPECT_EQ(message("[max 1 ]"), "column 1: \"[max\"" + words);
  EXPECT_EQ(message("\xff\n"), "column 1: \"\\ufffd\\n\"" + words);
  EXPECT_EQ(message("1 2"), "token 2: the expression has already ended");
  EXPECT_EQ(message("[MAX 1 ] ]"), "token 4: the expression has already ended");
  EXPECT_EQ(message("]"), "token 1: \"]\" ends no list");
  EXPECT_EQ(message("[MAX ]"), "token 2: a list without arguments ends here");
  EXPECT_EQ(message("[MAX 1 [MIN 2"), "2 of its lists have no end, \"]\"");
  EXPECT_EQ(message("( )"), "there is no expression");
  EXPECT_EQ(message("( ( [MAX 4 ) 3 ) ] )"),
            "column 5: the parentheses are not those of the expression, which "
            "are \"( [MAX 4 ) 3 ) ] )\" from here");
  EXPECT_EQ(message("( ( ( [MAX 4 ) 3 ) ]"),
            "column 21: the parentheses are not those of the expression, which "
            "are \" )\" from here");
  EXPECT_EQ(message("( 4 )"),
            "column 1: the parentheses are not those of the expression, which "
            "are \"4\" from here");
  for (const std::uint8_t token : {0, 16, 255}) {
    EXPECT_EQ(error_of([&] { listops_value(std::vector{token}); }),
              "token 1: there is no token " + std::to_string(token));
    EXPECT_NE(error_of([&] { listops_text(std::vector{token}); }), "");
  }
}

TEST(ListOps, TakesAnyDepth) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "[MAX ";
  text += "6";
  EXPECT_EQ(error_of([&] { value_of(text); }),
            "100000 of its lists have no end, \"]\"");
  for (int i = 0; i < 100'000; ++i) text += " ]";
  EXPECT_EQ(value_of(text), 6);
  EXPECT_EQ(value_of(listops_text(tokens_of(text))), 6);
}

}  // namespace listops_test
}  // namespace polyattn::data
