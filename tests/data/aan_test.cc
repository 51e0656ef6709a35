// Pairs of papers in the files of Long Range Arena.
#include "data/aan.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "data/hold_out.h"
#include "data/load.h"
#include "data/sequence_support.h"

namespace polyattn::data {
namespace aan_test {

using test::error_of;
using test::expect_equal;
using test::sequence;
using test::TemporaryFolder;

constexpr const char* kPairs =
    "1.0\tP00-1\tP00-2\tabc\tde\n0\tP00-3\tP00-1\tf\tghijk\n";

SequenceSet parse(std::string_view text) {
  return parse_aan_file(text, "x.tsv", 4);
}

TEST(AanFile, ReadsPairs) {
  const SequenceSet set = parse(kPairs);
  EXPECT_EQ(set.towers, 2);
  ASSERT_EQ(set.count(), 2U);
  EXPECT_EQ(set.labels, (std::vector<std::int32_t>{1, 0}));
  EXPECT_EQ(set.begin, (std::vector<std::int64_t>{0, 3, 5, 6, 10}));
  EXPECT_EQ(sequence(set, 0), (std::vector<std::uint8_t>{98, 99, 100}));
  // Cut to four bytes.
  EXPECT_EQ(sequence(set, 3), (std::vector<std::uint8_t>{104, 105, 106, 107}));
  expect_equal(parse("1\tP00-1\tP00-2\tabc\tde\r\n0.0\tP00-3\tP00-1\tf\tghijk"),
               set);
}

TEST(AanFile, RefusesAndNamesTheLine) {
  const auto message = [](const std::string& text) {
    return error_of([&] { parse(text); });
  };
  const std::string first = "cannot read x.tsv: line 1: ";
  const std::string third = "cannot read x.tsv: line 3: ";
  const std::string start = kPairs;
  const auto fields = [](int count) {
    return "it has " + std::to_string(count) +
           " fields, not 5: a label, two names and two texts, with tabs "
           "between them";
  };
  EXPECT_EQ(message(""), "cannot read x.tsv: it has no pairs");
  EXPECT_EQ(message("\n"), first + fields(1));
  EXPECT_EQ(message(start + "\n"), third + fields(1));
  EXPECT_EQ(message(start + "1\ta\tb\tc\n"), third + fields(4));
  EXPECT_EQ(message(start + "1\ta\tb\tc\td\te\n"), third + fields(6));
  EXPECT_EQ(message(start + "2\ta\tb\tc\td\n"),
            third + "its label is \"2\", not 0 or 1");
  EXPECT_EQ(message(start + "\ta\tb\tc\td\n"),
            third + "its label is \"\", not 0 or 1");
  EXPECT_EQ(message(start + "1\ta\tb\t\td\n"), third + "text 1 is empty");
  EXPECT_EQ(message(start + "1\ta\tb\tc\t\n"), third + "text 2 is empty");
  EXPECT_EQ(message(start + "1\ta\tb\tc\t\xff\n"),
            third + "text 2 is not UTF-8");
}

// A cut is seen, or leaves a shorter text or fewer pairs.
TEST(AanFile, SeesWhereAFileWasCut) {
  const std::string whole = kPairs;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);
    const std::string error = error_of([&] { parse(cut); });
    if (!error.empty()) {
      EXPECT_TRUE(error.starts_with("cannot read x.tsv: ")) << error;
      continue;
    }
    EXPECT_LE(parse(cut).count(), 2U);
    EXPECT_FALSE(cut.ends_with('\t')) << size;
  }
}

TEST(LoadAan, ReadsAFolder) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { load_aan({.path = folder.path()}); }),
            "cannot read " + (folder / "new_aan_pairs.train.tsv").string() +
                ": No such file or directory");
  folder.write("new_aan_pairs.train.tsv", kPairs);
  folder.write("new_aan_pairs.test.tsv", "1\ta\tb\tc\td\n");
  SequenceSplits splits = load_aan({.path = folder.path()});
  EXPECT_EQ(splits.train.count(), 2U);
  EXPECT_EQ(splits.test.count(), 1U);
  EXPECT_EQ(splits.vocabulary, 257);
  EXPECT_EQ(splits.class_names.size(), 2U);
  EXPECT_EQ(error_of([] { load_aan({}); }),
            "[aan] the pairs of papers need a path: the folder of Long Range "
            "Arena with new_aan_pairs.train.tsv and new_aan_pairs.test.tsv");
  EXPECT_EQ(
      error_of([&] { load_aan({.path = folder.path(), .max_length = 0}); }),
      "[aan] max_length 0 < 1");
}

// Both sequences of a pair go together.
TEST(LoadAan, PairsAreHeldOutWhole) {
  SequenceSplits splits;
  splits.train = parse(kPairs);
  const SequenceSet before = splits.train;
  hold_out(splits, 0.5);
  ASSERT_EQ(splits.train.count(), 1U);
  ASSERT_EQ(splits.validation.count(), 1U);
  EXPECT_EQ(splits.validation.towers, 2);
  EXPECT_EQ(splits.train.towers, 2);
  for (const SequenceSet* set : {&splits.train, &splits.validation}) {
    const std::size_t i = set->labels[0] == 1 ? 0 : 1;
    EXPECT_EQ(sequence(*set, 0), sequence(before, 2 * i));
    EXPECT_EQ(sequence(*set, 1), sequence(before, 2 * i + 1));
  }
}

}  // namespace aan_test
}  // namespace polyattn::data
