// Archives that are whole, and archives that are not.
#include "io/zip.h"

#include <gtest/gtest.h>

#include "torch_file_bytes.h"

namespace polyattn::io::test {
namespace zip_test {

const Members kTwo = {{"a/one", "first"}, {"a/two", "the second"}};

std::string message(std::string_view file) {
  const std::string found = polyattn::test::message_of<TorchFileError>(
      [&] { zip_members(bytes_of(file), "x"); });
  const std::string before = "[torch_file] x: the zip archive is damaged: ";
  if (found.empty()) return found;
  EXPECT_TRUE(found.starts_with(before)) << found;
  return found.substr(before.size());
}

std::string contents(std::string_view file) {
  std::string text;
  for (const ZipMember& member : zip_members(bytes_of(file), "x")) {
    text += member.name + '=' +
            std::string(reinterpret_cast<const char*>(member.bytes.data()),
                        member.bytes.size()) +
            ';';
  }
  return text;
}

TEST(Zip, GivesItsMembers) {
  const std::string expected = "a/one=first;a/two=the second;";
  EXPECT_EQ(contents(zip_of(kTwo)), expected);
  EXPECT_EQ(contents(zip_of(kTwo, {.comment = "a comment PK\5\6"})), expected);
  EXPECT_EQ(contents(zip_of(kTwo, {.zip64 = true})), expected);
  // With a data descriptor, as torch writes.
  EXPECT_EQ(contents(zip_of(kTwo, {.flags = 0x808})), expected);
  EXPECT_EQ(contents(zip_of({})), "");
  EXPECT_EQ(contents(zip_of({{"a/", ""}, {"a/b", ""}})), "a/b=;");
}

TEST(Zip, SaysWhatIsCompressed) {
  const std::string file = zip_of(kTwo, {.method = 8});
  for (const ZipMember& member : zip_members(bytes_of(file), "x")) {
    EXPECT_TRUE(member.compressed);
  }
  EXPECT_FALSE(zip_members(bytes_of(zip_of(kTwo)), "x").at(0).compressed);
  EXPECT_EQ(message(zip_of(kTwo, {.flags = 1})),
            "member \"a/one\" is encrypted");
}

TEST(Zip, RefusesWrongPlaces) {
  EXPECT_EQ(message(zip_of({{"a", "x"}, {"a", "y"}})),
            "two members are called \"a\"");
  EXPECT_EQ(message(zip_of(kTwo, {.offset = 1})),
            "member \"a/two\" is not where it should be");
  EXPECT_EQ(message(zip_of(kTwo, {.size = 1})),
            "member \"a/two\" reaches into the directory");
  // The second begins behind 30 + 5 + 6 + 5 bytes, its content 41 later.
  const std::string far = zip_of(kTwo, {.size = 100000, .zip64 = true});
  const std::string cut = " more are not in a file of " +
                          std::to_string(far.size()) + "; is it cut short?";
  EXPECT_EQ(message(far), "bytes 87 and 100010" + cut);
  EXPECT_EQ(message(zip_of(kTwo, {.offset = -200, .zip64 = true})),
            "bytes 18446744073709551462 and 30" + cut);
  // Another archive inside the first member, at which the second points.
  const std::string inner = zip_of({{"a/two", "the second"}});
  const Members nested = {{"a/one", inner}, {"a/two", "the second"}};
  const auto back = -static_cast<std::int64_t>(inner.size());
  EXPECT_EQ(message(zip_of(nested, {.offset = back})),
            "two of its members overlap");
}

// Wherever the file ends, and whichever byte is another: an error, or members
// that lie in the file.
TEST(Zip, SurvivesDamage) {
  for (const bool zip64 : {false, true}) {
    const std::string whole = zip_of(kTwo, {.zip64 = zip64});
    for (std::size_t size = 0; size < whole.size(); ++size) {
      EXPECT_NE(message(whole.substr(0, size)), "") << size;
    }
    for (std::size_t i = 0; i < whole.size(); ++i) {
      for (const char change : {'\x01', '\x80', '\xff'}) {
        std::string damaged = whole;
        damaged[i] = static_cast<char>(damaged[i] ^ change);
        try {
          for (const auto& member : zip_members(bytes_of(damaged), "x")) {
            EXPECT_LE(member.bytes.size(), damaged.size());
          }
        } catch (const TorchFileError&) {
        }
      }
    }
  }
  EXPECT_EQ(message("PK"), "it has no directory at its end; is it cut short?");
}

}  // namespace zip_test
}  // namespace polyattn::io::test
