// The reader of TOML, by hand-worked texts and against toml++.
#include "train/run/toml_reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <limits>
#include <random>
#include <utility>

#include "base/utf8.h"
#include "support.h"

#ifdef POLYATTN_HAVE_TOMLPLUSPLUS
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>
#endif

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
            "a@1:1=1;[b]c@2:1=2;d e@3:2=3;[s]k@6:1=true;-_9@7:1=\"z\";");
  EXPECT_EQ(summary("[a]\nb.c = 1\n[a.b]\n"), "[a]b.c@2:1=1;[a.b]");
  EXPECT_EQ(summary("\xef\xbb\xbf"
                    "a = 1"),
            "a@1:1=1;");
}

TEST(TomlReader, ColumnsCountCharacters) {
  EXPECT_EQ(refusal("a = 'éé' x"), "1:10: the line must end here");
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
            "1:5: \"9223372036854775808\" does not fit into 64 bits");
  EXPECT_EQ(refusal("a = 1e999"),
            "1:5: \"1e999\" is beyond the range of numbers");
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
  EXPECT_EQ(refusal("= 1"), "1:1: " + key);
  EXPECT_EQ(refusal("[]"), "1:2: " + key);
  EXPECT_EQ(refusal("[a.]"), "1:4: " + key);
  EXPECT_EQ(refusal("a..b = 1"), "1:3: " + key);
  EXPECT_EQ(refusal("é = 1"), "1:1: " + key);
  EXPECT_EQ(refusal("a"), "1:2: = is missing");
  EXPECT_EQ(refusal("a b = 1"), "1:3: = is missing");
  EXPECT_EQ(refusal("[a] x"), "1:5: the line must end here");
  EXPECT_EQ(refusal("a = 1 b = 2"), "1:7: the line must end here");
  EXPECT_EQ(refusal("a = 1\rb = 2"), "1:6: the line must end here");
  EXPECT_EQ(refusal("# \x07"), "1:3: a control character in a comment");
  EXPECT_EQ(refusal("a = {b = 1}"),
            "1:5: a table, but values are strings, numbers and booleans");
  EXPECT_EQ(refusal("a.b = 1\n[a]\n"),
            "2:2: section \"a\" is there already, since line 1");
  EXPECT_EQ(refusal("a = 1\n\xc3("),
            "2:1: from here on it is no UTF-8: is this the right file?");
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

TEST(Utf8, MakesWhatItKnows) {
  EXPECT_EQ(base::utf8_of(0x41), "A");
  EXPECT_EQ(base::utf8_of(0xe9), "é");
  EXPECT_EQ(base::utf8_of(0x20ac), "€");
  EXPECT_EQ(base::utf8_of(0x1f600), "😀");
  EXPECT_EQ(base::utf8_of(0xd800), std::nullopt);
  EXPECT_EQ(base::utf8_of(0x110000), std::nullopt);
  for (std::uint32_t code = 0; code <= 0x10ffff; code += 97) {
    const auto text = base::utf8_of(code);
    EXPECT_EQ(text.has_value(), code < 0xd800 || code > 0xdfff) << code;
    EXPECT_EQ(base::utf8_prefix(text.value_or("")), text.value_or("").size())
        << code;
  }
}

#ifdef POLYATTN_HAVE_TOMLPLUSPLUS

// The value as toml++ has it; nothing if it refuses it or has another type.
std::optional<Value> other_value(const std::string& text) {
  try {
    const toml::table table = toml::parse("v = " + text + "\n");
    const toml::node* const node = table.get("v");
    if (node == nullptr || table.size() != 1) return std::nullopt;
    if (const auto* flag = node->as_boolean()) return flag->get();
    if (const auto* integer = node->as_integer()) return integer->get();
    if (const auto* number = node->as_floating_point()) return number->get();
    if (const auto* string = node->as_string()) return string->get();
  } catch (const toml::parse_error&) {
  }
  return std::nullopt;
}

std::string shown(const std::optional<Value>& value) {
  return value ? std::string(type_name(*value)) + " " + value_text(*value)
               : "refused";
}

// Tokens at random from an alphabet in which many are numbers.
TEST(TomlAgainstTomlPlusPlus, NumbersAtRandom) {
  constexpr std::string_view kAlphabet = "0011237_..eE+-xob";
  std::mt19937 random(1);
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    const std::size_t size = 1 + random() % 7;
    for (std::size_t j = 0; j < size; ++j) {
      text += kAlphabet[random() % kAlphabet.size()];
    }
    const auto ours = read_toml_value(text);
    const auto value = ours ? ours->value : std::optional<Value>();
    EXPECT_EQ(shown(value), shown(other_value(text))) << text;
    accepted += value ? 1 : 0;
  }
  // The test is about something.
  EXPECT_GT(accepted, 1000);
  EXPECT_LT(accepted, 19000);
}

TEST(TomlAgainstTomlPlusPlus, StringsAtRandom) {
  // Nothing outside of ASCII: toml++ 3.3 has undefined behaviour where it
  // stands outside of quotes.
  constexpr std::string_view kPieces[] = {
      "\"", "'",       "\\",   "\\\"", "a",  "\\u00e", "9",   "#",
      " ",  "\\U0001", "f600", "\\n",  "\t", "\x01",   "\\\\"};
  std::mt19937 random(2);
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string quote = random() % 2 == 0 ? "\"" : "'";
    std::string text = quote;
    for (std::size_t left = random() % 5; left > 0; --left) {
      text += kPieces[random() % std::size(kPieces)];
    }
    text += quote;
    if (text.starts_with("\"\"\"") || text.starts_with("'''")) continue;
    const auto ours = read_toml_value(text);
    const auto value = ours ? ours->value : std::optional<Value>();
    EXPECT_EQ(shown(value), shown(other_value(text))) << text;
    accepted += value ? 1 : 0;
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_LT(accepted, 19000);
}

// What we print is TOML to others too.
TEST(TomlAgainstTomlPlusPlus, ReadsWhatWePrint) {
  for (const std::string& task : task_names()) {
    Config config = default_config(task);
    config.task.path = "C:\\a \"b\" # é";
    config.train.lr = 1.0 / 3;
    const toml::table table = toml::parse(config_text(config));
    EXPECT_EQ(table["task"]["name"].value<std::string>(), task);
    EXPECT_EQ(table["task"]["path"].value<std::string>(), config.task.path);
    EXPECT_EQ(table["train"]["lr"].value<double>(), config.train.lr);
    std::size_t keys = 0;
    for (const auto& [name, section] : table) {
      keys += section.as_table()->size();
    }
    EXPECT_EQ(keys, fields().size());
  }
}

#endif  // POLYATTN_HAVE_TOMLPLUSPLUS

}  // namespace toml_reader_test
}  // namespace polyattn::run
