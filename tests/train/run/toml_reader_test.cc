// What is accepted and what is refused as TOML.
#include "train/run/toml_reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "base/utf8.h"
#include "support.h"

namespace polyattn::run {
namespace toml_reader_test {

std::string refusal(std::string_view text) {
  try {
    read_toml(text);
  } catch (const TomlError& error) {
    return std::to_string(error.line()) + ":" + std::to_string(error.column()) +
           ": " + error.what();
  }
  return "";
}

// The text as the reader understands it: [section]key@line:column=value.
std::string summary(std::string_view text) {
  std::string result;
  for (const TomlSection& section : read_toml(text)) {
    if (!section.name.empty()) result += "[" + section.name + "]";
    for (const TomlEntry& entry : section.entries) {
      result += entry.key + "@" + std::to_string(entry.line) + ":" +
                std::to_string(entry.column) + "=" +
                (entry.value.value ? value_text(*entry.value.value)
                                   : std::string(entry.value.type)) +
                ";";
    }
  }
  return result;
}

TEST(TomlReader, ReadsSectionsAndKeys) {
  EXPECT_EQ(summary(""), "");
  EXPECT_EQ(summary("# only a comment"), "");
  EXPECT_EQ(summary("a = 1\nb.c = 2\n\tb.'d e' = 3 # x\n\r\n"
                    "[ s ]\r\n\"k\" = true # y\n-_9 = 'z'"),
            "a@1:1=1;[b]c@2:3=2;d e@3:4=3;[s]k@6:1=true;-_9@7:1=\"z\";");
  EXPECT_EQ(summary("[b]\nz = 1\na.c = 2\n[a]\ny = 3\nx = 4\n[b.d]\n"),
            "[b]z@2:1=1;[b.a]c@3:3=2;[a]y@5:1=3;x@6:1=4;[b.d]");
  EXPECT_EQ(summary("\xef\xbb\xbf"
                    "a = 1"),
            "a@1:1=1;");
}

TEST(TomlReader, ColumnsCountCharacters) {
  EXPECT_EQ(refusal("a = 'éé' x"),
            "1:10: expected a comment or whitespace, saw 'x'");
}

TEST(TomlReader, ReadsStrings) {
  EXPECT_EQ(summary(R"(a = "x \" \\ \t \u00e9 \U0001F600 é")"),
            "a@1:1=\"x \\\" \\\\ \\u0009 é 😀 é\";");
  EXPECT_EQ(summary(R"(a = 'C:\new "x"')"), "a@1:1=\"C:\\\\new \\\"x\\\"\";");
  EXPECT_EQ(summary("a = \"\"\nb = ''"), "a@1:1=\"\";b@2:1=\"\";");
  EXPECT_EQ(summary("a = \"# no comment\" # comment"),
            "a@1:1=\"# no comment\";");
}

TEST(TomlReader, RefusesBadStrings) {
  EXPECT_EQ(refusal("a = \"x\nb = 1"),
            "1:7: a string must end on its line, with \"");
  EXPECT_EQ(refusal("a = 'x"), "1:7: a string must end on its line, with '");
  EXPECT_EQ(refusal("a = \"x\x01\""),
            "1:7: a control character in a string; \"\\u0000\" escapes it");
  EXPECT_EQ(refusal("a = \"\"\"x\"\"\""),
            "1:5: strings of several lines have no place in a config");
  EXPECT_EQ(refusal("a = ''''''"),
            "1:5: strings of several lines have no place in a config");
  for (const char* bad :
       {R"("\x")", R"("\u12")", R"("\u12g4")", R"("\ud800")", R"("\U00110000")",
        R"("\u+123")", R"("\u-001")", "\"\\", "\"\\u", "\"\\u0041"}) {
    EXPECT_NE(refusal(std::string("a = ") + bad), "") << bad;
  }
}

TEST(TomlReader, ReadsNumbers) {
  for (const auto& [text, value] :
       {std::pair{"0", Value(std::int64_t{0})},
        std::pair{"-0", Value(std::int64_t{0})},
        std::pair{"+17", Value(std::int64_t{17})},
        std::pair{"1_000_000", Value(std::int64_t{1000000})},
        std::pair{"-9223372036854775808",
                  Value(std::numeric_limits<std::int64_t>::min())},
        std::pair{"0xDead_bEEf", Value(std::int64_t{0xdeadbeef})},
        std::pair{"0o755", Value(std::int64_t{493})},
        std::pair{"0b1101", Value(std::int64_t{13})},
        std::pair{"3.25", Value(3.25)}, std::pair{"-0.5", Value(-0.5)},
        std::pair{"1e3", Value(1000.0)}, std::pair{"1E+3", Value(1000.0)},
        std::pair{"5e-2", Value(0.05)}, std::pair{"1_0.0_1e0_2", Value(1001.0)},
        std::pair{"4.9406564584124654e-324", Value(4.9406564584124654e-324)},
        std::pair{"-inf", Value(-std::numeric_limits<double>::infinity())},
        std::pair{"true", Value(true)}, std::pair{"false", Value(false)}}) {
    const auto read = read_toml_value(text);
    ASSERT_TRUE(read && read->value) << text;
    EXPECT_EQ(*read->value, value) << text;
  }
  EXPECT_TRUE(std::isnan(std::get<double>(*read_toml_value("+nan")->value)));
}

TEST(TomlReader, RefusesBadNumbers) {
  for (const char* bad :
       {"01",   "-01",  "1__0", "_1",   "1_",   "1.",  ".5",  "1.e3",
        "1e",   "1e+",  "0x",   "0x_1", "+0x1", "0xg", "0b2", "0o8",
        "1_.5", "1._5", "1e_5", "--1",  "+-1",  "1 2", "Inf", "NaN",
        "True", "yes",  "",     "+",    "-",    "e5",  "0X1"}) {
    EXPECT_FALSE(read_toml_value(bad)) << bad;
  }
  EXPECT_EQ(refusal("a = 9223372036854775808"),
            "1:24: '9223372036854775808' is not representable in 64 bits");
  EXPECT_EQ(refusal("a = 1e999"),
            "1:10: '1e999' could not be interpreted as a value");
}

TEST(TomlReader, KnowsDates) {
  for (const char* date : {"1979-05-27", "07:32:00", "1979-05-27T07:32:00Z"}) {
    const auto read = read_toml_value(date);
    ASSERT_TRUE(read) << date;
    EXPECT_FALSE(read->value);
    EXPECT_EQ(read->type, "a date or time");
  }
}

TEST(TomlReader, AValueIsAllThereIs) {
  EXPECT_TRUE(read_toml_value("1 # x"));
  EXPECT_FALSE(read_toml_value("1\n2"));
  EXPECT_FALSE(read_toml_value("1\nb = 2"));
  EXPECT_FALSE(read_toml_value("[1]"));
  EXPECT_FALSE(read_toml_value("{a = 1}"));
  EXPECT_FALSE(read_toml_value("\"a\" \"b\""));
}

TEST(TomlReader, RefusesBadLines) {
  const std::string key =
      "a key is made of letters, digits, _ and -, or stands in quotes";
  const std::string part =
      "expected bare key starting character or string delimiter, saw ";
  const std::string end = "expected a comment or whitespace, saw ";
  EXPECT_EQ(refusal("= 1"),
            "1:1: expected keys, tables, whitespace or comments, saw '='");
  EXPECT_EQ(refusal("[]"), "1:2: " + key);
  EXPECT_EQ(refusal("["), "1:2: " + key);
  EXPECT_EQ(refusal("[[ \n"), "1:4: " + key);
  EXPECT_EQ(refusal("[a.]"), "1:4: " + part + "']'");
  EXPECT_EQ(refusal("a..b = 1"), "1:3: " + part + "'.'");
  EXPECT_EQ(refusal("é = 1"),
            "1:1: letters outside of ASCII must stand in quotes");
  EXPECT_EQ(refusal("a = é"),
            "1:5: letters outside of ASCII must stand in quotes");
  // toml++ 3.3 would run into undefined behaviour.
  for (const char* value : {"0'é'", "a\"é\"", "1.'é'", "0-'é'", "07:'é'"}) {
    EXPECT_NE(refusal(std::string("a = ") + value)
                  .find("a quote within a value or a key"),
              std::string::npos)
        << value;
  }
  EXPECT_EQ(refusal("a"), "1:2: the text ends within this key-value pair");
  EXPECT_EQ(refusal("a b = 1"), "1:3: expected '=', saw 'b'");
  EXPECT_EQ(refusal("[a] x"), "1:5: " + end + "'x'");
  EXPECT_EQ(refusal("a = 1 b = 2"), "1:7: " + end + "'b'");
  EXPECT_EQ(refusal("a = 1\rb = 2"), "1:6: a control character");
  EXPECT_EQ(refusal("# \x07"), "1:3: a control character in a comment");
  EXPECT_EQ(refusal("a.b = 1\n[a]\n"),
            "2:1: cannot redefine existing table 'a'");
  EXPECT_EQ(refusal("a = 1\n\xc3("),
            "2:1: from here on it is no UTF-8: is this the right file?");
}

TEST(TomlReader, WordsThatAreNoValuesNeedQuotes) {
  for (const char* word : {"x^3", "mean", "torch", "full", "imdb", "none"}) {
    EXPECT_NE(refusal(std::string("a = ") + word).find("; strings need quotes"),
              std::string::npos)
        << word;
  }
}

TEST(TomlReader, NamesWhatNoConfigHas) {
  EXPECT_EQ(summary("a = {b = 1}\nb = [1, [2]]\n[[c]]\n"),
            "a@1:1=a table;b@2:1=an array;c@3:3=an array;");
}

TEST(TomlReader, HasListsOfStrings) {
  const auto sections = read_toml("a = ['x',\n  \"y\"]\nb = ['x', 1]\nc = []");
  const auto& entries = sections.at(0).entries;
  ASSERT_EQ(entries.size(), 3U);
  ASSERT_TRUE(entries[0].value.strings);
  ASSERT_EQ(entries[0].value.strings->size(), 2U);
  const TomlString& second = entries[0].value.strings->at(1);
  EXPECT_EQ(second.text, "y");
  EXPECT_EQ(second.line, 2);
  EXPECT_EQ(second.column, 3);
  EXPECT_FALSE(entries[1].value.strings);
  ASSERT_TRUE(entries[2].value.strings);
  EXPECT_TRUE(entries[2].value.strings->empty());
}

TEST(TomlReader, HasTablesThatRepeatAsSectionsIfAsked) {
  const auto sections =
      read_toml("[[a]]\nb = 1\n[c]\n[[a]]\nb = 2\n", TomlTables::kSections);
  ASSERT_EQ(sections.size(), 4U);
  EXPECT_EQ(sections[1].name, "a");
  EXPECT_EQ(sections[1].line, 1);
  EXPECT_EQ(sections[2].name, "c");
  EXPECT_EQ(sections[3].name, "a");
  EXPECT_EQ(sections[3].line, 4);
  EXPECT_EQ(std::get<std::int64_t>(*sections[3].entries.at(0).value.value), 2);
}

TEST(TomlReader, RefusesKeysOfManyParts) {
  std::string key = "a";
  for (int i = 0; i < 16; ++i) key += ".a";
  EXPECT_EQ(refusal(key + " = 1"), "");
  EXPECT_EQ(refusal(key + ".a = 1"),
            "1:34: too many dots in a line: a key is section.key");
  EXPECT_EQ(refusal("a = '" + key + ".a' # " + key + ".a"), "");
}

TEST(Utf8, KnowsWhatIsWellFormed) {
  for (const char* good : {"", "a", "é", "€", "😀", "\xed\x9f\xbf",
                           "\xee\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(base::utf8_prefix(good), std::string_view(good).size()) << good;
  }
  for (const char* bad :
       {"\x80", "\xc3", "\xc3(", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf",
        "\xe2\x82", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
        "\xf8\x88\x80\x80\x80", "\xff"}) {
    EXPECT_EQ(base::utf8_prefix("ab" + std::string(bad)), 2U) << bad;
  }
}

}  // namespace toml_reader_test
}  // namespace polyattn::run
