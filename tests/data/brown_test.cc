// The Brown corpus: words without their parts of speech, order, damaged files.
#include "data/brown.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "data/load.h"
#include "data/sequence_support.h"

namespace polyattn::data {
namespace brown_test {

using polyattn::test::write_text;
using test::error_of;
using test::has;
using test::TemporaryFolder;
using test::TestCache;

TEST(Brown, KeepsTheWords) {
  EXPECT_EQ(parse_brown("\n\n\tThe/at jury/nn said/vbd ./.\n"
                        "``/`` No/rb ''/'' ,/, 1-1/2/cd and/or/cc\n\n\n\n"
                        "\tIt/pps  ended/vbd ./.\r\n\n",
                        "x"),
            "The jury said .\n"
            "`` No '' , 1-1/2 and/or\n"
            "\n"
            "It ended .");
  EXPECT_EQ(parse_brown("a/b", "x"), "a");
}

TEST(Brown, DamagedSamplesAreRefused) {
  EXPECT_EQ(error_of([] { parse_brown("a/at\nb/nn jury c/nn\n", "ca01"); }),
            "cannot read ca01: line 2: \"jury\" is no word with its part of "
            "speech, as said/vbd");
  for (const char* token : {"/at", "the/", "/", "the"}) {
    EXPECT_NE(error_of([&] { parse_brown(token, "x"); }), "") << token;
  }
  EXPECT_EQ(error_of([] { parse_brown("\n \t\n", "cb07"); }),
            "cannot read cb07: it has no words");
  EXPECT_EQ(error_of([] { parse_brown("", "cb07"); }),
            "cannot read cb07: it has no words");
}

std::string tagged(const std::string& word) { return word + "/nn ./.\n"; }

// Ten samples of each of two kinds, and what else the package has.
void write_samples(const std::filesystem::path& folder) {
  for (const char kind : {'a', 'b'}) {
    for (int i = 10; i < 20; ++i) {
      const std::string name = std::string("c") + kind + std::to_string(i);
      write_text(folder / name, tagged(name));
    }
  }
  write_text(folder / "README", "no words here");
  write_text(folder / "cs01", "no words here");
}

TEST(Brown, EveryStretchHasSamplesOfEachKind) {
  const TemporaryFolder folder;
  write_samples(folder.path());
  const std::vector<std::string> samples = read_brown(folder.path());
  ASSERT_EQ(samples.size(), 20U);
  for (std::size_t first = 0; first < 20; first += 5) {
    const auto of_a = std::count_if(
        samples.begin() + static_cast<std::ptrdiff_t>(first),
        samples.begin() + static_cast<std::ptrdiff_t>(first) + 5,
        [](const std::string& sample) { return sample.starts_with("ca"); });
    EXPECT_GE(of_a, 2);
    EXPECT_LE(of_a, 3);
  }
}

TEST(Brown, HoldsOutTheLastTenth) {
  const TemporaryFolder folder;
  write_samples(folder.path());
  const TextSplits splits = load_text({.name = "brown", .path = folder.path()});
  const std::vector<std::string> samples = read_brown(folder.path());
  EXPECT_EQ(splits.test, samples[18] + "\n\n" + samples[19]);
  EXPECT_TRUE(splits.train.starts_with(samples[0] + "\n\n"));

  const TestCache cache;
  EXPECT_TRUE(has(error_of([] { load_text({.name = "brown"}); }),
                  "polyattn data fetch brown"));
  EXPECT_TRUE(
      has(error_of([&] { load_text({.name = "brown", .path = cache.path()}); }),
          "has none of the samples of the Brown corpus"));
}

}  // namespace brown_test
}  // namespace polyattn::data
