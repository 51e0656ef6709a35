// Pairs of passages of the State of the Union addresses.
#include "data/sotu_pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "data/sequence_support.h"

namespace polyattn::data {
namespace sotu_pairs_test {

using test::error_of;
using test::expect_equal;
using test::sequence;

// Each passage of four bytes is the address, the place in it, and "..".
std::vector<std::string> addresses(std::size_t count) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < count; ++i) {
    std::string text;
    // Of very different lengths.
    for (std::size_t j = 0; j < 4 + (i % 3) * 20; ++j) {
      text +=
          {static_cast<char>('A' + i), static_cast<char>('0' + j), '.', '.'};
    }
    all.push_back(text + "...");  // no whole passage
  }
  return all;
}

SotuPairsSource small() {
  return {.length = 4, .train_count = 600, .test_count = 40, .seed = 3};
}

using Passage = std::vector<std::uint8_t>;

TEST(SotuPairs, LabelsSayWhetherTheAddressIsTheSame) {
  const SequenceSplits splits = make_sotu_pairs(addresses(30), small());
  EXPECT_EQ(splits.vocabulary, 257);
  for (const SequenceSet* set : {&splits.train, &splits.test}) {
    ASSERT_EQ(set->begin.size(), 2 * set->count() + 1);
    std::set<std::pair<Passage, Passage>> pairs;
    for (std::size_t i = 0; i < set->count(); ++i) {
      const Passage a = sequence(*set, 2 * i), b = sequence(*set, 2 * i + 1);
      ASSERT_EQ(a.size(), 4U);
      EXPECT_EQ(set->labels[i], a[0] == b[0] ? 1 : 0);
      EXPECT_NE(a, b);
      pairs.insert(std::minmax(a, b));
    }
    EXPECT_EQ(pairs.size(), set->count()) << "a pair is there twice";
    EXPECT_EQ(std::count(set->labels.begin(), set->labels.end(), 1),
              static_cast<std::ptrdiff_t>(set->count() / 2));
  }
}

TEST(SotuPairs, TrainingAndTestingShareNoAddress) {
  const SequenceSplits splits = make_sotu_pairs(addresses(30), small());
  std::set<std::uint8_t> train, test;
  for (std::size_t i = 0; i < splits.train.begin.size() - 1; ++i) {
    train.insert(sequence(splits.train, i)[0]);
  }
  for (std::size_t i = 0; i < splits.test.begin.size() - 1; ++i) {
    test.insert(sequence(splits.test, i)[0]);
  }
  // Moved up by one.
  EXPECT_EQ(test, (std::set<std::uint8_t>{'A' + 10, 'A' + 20, 'A' + 30}));
  // Of 27 some may not have been drawn.
  EXPECT_GE(train.size(), 23U);
  for (const std::uint8_t address : test) EXPECT_FALSE(train.contains(address));
}

// Long addresses are as often in pairs of one address as in the others: nine of
// 44 passages, nine of 24, nine of 4.
TEST(SotuPairs, TheAddressAloneTellsNothing) {
  SotuPairsSource source = small();
  source.train_count = 3000;
  const SequenceSet set = make_sotu_pairs(addresses(30), source).train;
  std::map<int, int> of_long;
  for (std::size_t i = 0; i < set.count(); ++i) {
    const int address = sequence(set, 2 * i)[0] - 1 - 'A';
    if (address % 3 == 2) ++of_long[set.labels[i]];
  }
  // 61 % of 1500; five deviations of chance.
  EXPECT_NEAR(of_long[0], 917, 95);
  EXPECT_NEAR(of_long[1], 917, 95);
}

TEST(SotuPairs, FollowsFromTheSeed) {
  const SequenceSplits first = make_sotu_pairs(addresses(30), small());
  expect_equal(make_sotu_pairs(addresses(30), small()).train, first.train);
  SotuPairsSource source = small();
  source.seed = 4;
  EXPECT_NE(make_sotu_pairs(addresses(30), source).test.tokens,
            first.test.tokens);
  source = small();
  source.train_count = 2;
  expect_equal(make_sotu_pairs(addresses(30), source).test, first.test);
}

TEST(SotuPairs, GivesUpWhenThereAreNoMore) {
  SotuPairsSource source = small();
  source.test_count = 10000;
  const std::string message =
      error_of([&] { make_sotu_pairs(addresses(30), source); });
  EXPECT_TRUE(message.starts_with("[sotu-pairs] 72 passages gave ")) << message;
  EXPECT_TRUE(message.ends_with(
      " different pairs, and 10000 are wanted: lower train_count and "
      "test_count, or shorten the passages"))
      << message;
  // None that is long enough.
  source = small();
  source.length = 1000;
  EXPECT_EQ(error_of([&] { make_sotu_pairs(addresses(30), source); }),
            "[sotu-pairs] 0 passages gave 0 different pairs, and 600 are "
            "wanted: lower train_count and test_count, or shorten the "
            "passages");
}

TEST(SotuPairs, RefusesNumbersOutOfRange) {
  const auto message = [](auto change) {
    SotuPairsSource source = small();
    change(source);
    return error_of([&] { make_sotu_pairs(addresses(30), source); });
  };
  EXPECT_EQ(message([](auto& s) { s.length = 0; }),
            "[sotu-pairs] length 0 is not in [1, 1048576]");
  EXPECT_EQ(message([](auto& s) { s.train_count = 0; }),
            "[sotu-pairs] train_count 0 is not in [1, 1000000]");
  EXPECT_EQ(message([](auto& s) { s.test_count = 1000001; }),
            "[sotu-pairs] test_count 1000001 is not in [1, 1000000]");
  EXPECT_EQ(error_of([] {
              make_sotu_pairs({"a", "\xff"}, small());
            }),
            "[sotu-pairs] address 2 is not UTF-8");
}

TEST(LoadSotuPairs, ReadsAFolderOfYears) {
  const test::TemporaryFolder folder;
  const auto texts = addresses(30);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    folder.write(std::to_string(1900 + i) + "_x.txt", texts[i]);
  }
  SotuPairsSource source = small();
  source.path = folder.path();
  expect_equal(load_sotu_pairs(source).train,
               make_sotu_pairs(texts, small()).train);
}

}  // namespace sotu_pairs_test
}  // namespace polyattn::data
