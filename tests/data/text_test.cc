// Texts: documents and lines, what is held out, errors.
#include "data/text.h"

#include <gtest/gtest.h>

#include <limits>

#include "data/load.h"
#include "data/sequence_support.h"

namespace polyattn::data {
namespace text_test {

using test::error_of;
using test::TemporaryFolder;
using test::TestCache;

TEST(Text, HoldsOutWholeDocuments) {
  const std::vector<std::string> documents = {
      std::string(50, 'a'), std::string(30, 'b'), std::string(6, 'c'),
      std::string(8, 'd')};
  // Joined: 100 bytes. Documents begin at 52, 84 and 92.
  const auto test_size = [&](double share) {
    const TextSplits splits = split_documents(documents, share, "x");
    EXPECT_EQ(splits.train + "\n\n" + splits.test,
              documents[0] + "\n\n" + documents[1] + "\n\n" + documents[2] +
                  "\n\n" + documents[3]);
    return splits.test.size();
  };
  EXPECT_EQ(test_size(0.1), 8U);
  EXPECT_EQ(test_size(0.13), 16U);
  EXPECT_EQ(test_size(0.4), 48U);
  // None of the two parts is empty, whatever the share.
  EXPECT_EQ(test_size(0.001), 8U);
  EXPECT_EQ(test_size(0.999), 48U);
}

TEST(Text, TakesEmptyDocuments) {
  const TextSplits splits = split_documents({"", "aaaa", "", "bbbb"}, 0.3, "x");
  EXPECT_EQ(splits.train, "\n\naaaa\n\n");
  EXPECT_EQ(splits.test, "bbbb");
}

TEST(Text, HoldsOutWholeLines) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "line" + std::to_string(i % 10) + "\n";
  ASSERT_EQ(text.size(), 120U);
  const auto test_size = [&](double share) {
    const TextSplits splits = split_lines(text, share, "x");
    EXPECT_EQ(splits.train + splits.test, text);
    EXPECT_TRUE(splits.train.ends_with('\n'));
    return splits.test.size();
  };
  EXPECT_EQ(test_size(0.1), 12U);
  EXPECT_EQ(test_size(0.1125), 12U);  // 13.5
  EXPECT_EQ(test_size(0.14), 18U);    // 16.8
  EXPECT_EQ(test_size(0.5), 60U);
}

TEST(Text, CutsWithinALineOnlyWhereItMust) {
  const std::string one_line(100, 'x');
  EXPECT_EQ(split_lines(one_line, 0.1, "x").test.size(), 10U);
  // A line that begins 6 bytes away would take more than half of it.
  EXPECT_EQ(
      split_lines(std::string(83, 'x') + "\n" + std::string(16, 'y'), 0.1, "x")
          .test.size(),
      10U);
  EXPECT_EQ(
      split_lines(std::string(84, 'x') + "\n" + std::string(15, 'y'), 0.1, "x")
          .test.size(),
      15U);
  // The newline at the end begins no line.
  EXPECT_EQ(split_lines(std::string(99, 'x') + "\n", 0.1, "x").test.size(),
            10U);
}

TEST(Text, TakesAnyBytes) {
  std::string text;
  for (int i = 0; i < 1024; ++i) text += static_cast<char>(i);
  const TextSplits splits = split_lines(text, 0.25, "x");
  EXPECT_EQ(splits.train + splits.test, text);
  EXPECT_NEAR(static_cast<double>(splits.test.size()), 256, 128);
}

TEST(Text, RefusesWhatIsTooShort) {
  const auto message = [](const std::string& text, double share) {
    return error_of([&] { split_lines(text, share, "x"); });
  };
  EXPECT_EQ(message("", 0.5),
            "cannot use x: with test_share 0.5 its text gives 0 bytes for "
            "training and 0 for testing, where at least 2 of each are needed");
  EXPECT_EQ(message("abc", 0.5),
            "cannot use x: with test_share 0.5 its text gives 2 bytes for "
            "training and 1 for testing, where at least 2 of each are needed");
  EXPECT_EQ(message("abcd", 0.5), "");
  EXPECT_NE(message(std::string(19, 'x'), 0.05), "");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double share : {0.0, 1.0, -0.5, 1.5, nan}) {
    EXPECT_NE(message("abcdefgh", share).find("is not in (0, 1)"),
              std::string::npos);
    EXPECT_NE(error_of([&] {
                split_documents({"abcd", "efgh"}, share, "x");
              }).find("is not in (0, 1)"),
              std::string::npos);
  }
  EXPECT_EQ(error_of([] { split_documents({"abcd"}, 0.1, "x"); }),
            "cannot use x: it has 1 documents, and at least 2 are needed to "
            "hold one out");
  EXPECT_NE(error_of([] { split_documents({"abcd", "e"}, 0.1, "x"); }), "");
}

TEST(LoadText, ReadsAFileOrAFolder) {
  const TemporaryFolder folder;
  folder.write("b.txt", "third\nfourth");
  folder.write("a.txt", "first\nsecond");
  folder.write("c.md", "not read");
  const TextSplits splits =
      load_text({.name = "text", .path = folder.path(), .test_share = 0.2});
  EXPECT_EQ(splits.train, "first\nsecond\n\nthird\n");
  EXPECT_EQ(splits.test, "fourth");
  const TextSplits one =
      load_text({.name = "text", .path = folder / "c.md", .test_share = 0.5});
  EXPECT_EQ(one.train + one.test, "not read");
}

TEST(LoadText, ReadsAddressesInTheOrderOfTheirYears) {
  const TemporaryFolder folder;
  const std::string filler(40, 'x');
  folder.write("1953_truman.txt", "truman" + filler);
  folder.write("1953_eisenhower.txt", "eisenhower" + filler);
  folder.write("1790_washington.txt", "washington" + filler);
  folder.write("2001_bush.txt", "bush");
  folder.write("2001_bush.json", "{}");
  // The share is that of the set: a tenth.
  const TextSplits splits =
      load_text({.name = "sotu", .path = folder.path(), .test_share = 0.9});
  EXPECT_EQ(splits.train, "washington" + filler + "\n\neisenhower" + filler +
                              "\n\ntruman" + filler);
  EXPECT_EQ(splits.test, "bush");
  folder.write("washington.txt", "x");
  EXPECT_EQ(
      error_of([&] { load_text({.name = "sotu", .path = folder.path()}); }),
      "cannot read " + (folder / "washington.txt").string() +
          ": the name does not begin with a year");
}

TEST(LoadText, Refuses) {
  const TestCache cache;
  EXPECT_EQ(error_of([] { load_text({.name = "moby"}); }),
            "[text] there is no text 'moby': it is sotu, brown, or text "
            "with a path");
  EXPECT_EQ(error_of([] { load_text({.name = "text"}); }),
            "[text] text needs a path: a file, or a folder of .txt files");
  EXPECT_NE(error_of([] {
              load_text({.name = "sotu"});
            }).find("polyattn data fetch sotu"),
            std::string::npos);
  const auto at = [&](const char* name) {
    return error_of([&] { load_text({.name = "text", .path = cache / name}); });
  };
  EXPECT_EQ(at("none"), "cannot read " + (cache / "none").string() +
                            ": No such file or directory");
  cache.write("folder/a.md", "text that is not read");
  EXPECT_EQ(at("folder"), "cannot read " + (cache / "folder").string() +
                              ": the folder has no file that ends in .txt");
  cache.write("empty.txt", "");
  EXPECT_EQ(at("empty.txt"),
            "cannot use " + (cache / "empty.txt").string() +
                ": with test_share 0.1 its text gives 0 bytes for training and "
                "0 for testing, where at least 2 of each are needed");
}

}  // namespace text_test
}  // namespace polyattn::data
