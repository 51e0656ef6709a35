#include "data/hold_out.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace polyattn::data {
namespace hold_out_test {

// Two pixels an image, which are its number; sorted by class, as a folder of
// images is.
ImageSplits numbered_images(int count) {
  ImageSplits splits;
  splits.train = {.channels = 1, .height = 1, .width = 2};
  splits.test = {.channels = 1, .height = 1, .width = 2};
  for (int i = 0; i < count; ++i) {
    splits.train.pixels.push_back(static_cast<std::uint8_t>(i / 256));
    splits.train.pixels.push_back(static_cast<std::uint8_t>(i % 256));
    splits.train.labels.push_back(i * 10 / count);
  }
  return splits;
}

std::vector<int> numbers_of(const ImageSet& set) {
  std::vector<int> numbers;
  for (std::size_t i = 0; i < set.count(); ++i) {
    numbers.push_back(set.pixels[2 * i] * 256 + set.pixels[2 * i + 1]);
  }
  return numbers;
}

TEST(HoldOut, MovesAShareOfTheImages) {
  ImageSplits splits = numbered_images(1000);
  hold_out(splits, 0.1);
  const std::vector<int> left = numbers_of(splits.train);
  const std::vector<int> held = numbers_of(splits.validation);
  EXPECT_EQ(held.size(), 100U);
  EXPECT_EQ(splits.validation.pixels.size(), 200U);
  EXPECT_EQ(splits.validation.width, 2);
  EXPECT_TRUE(std::is_sorted(left.begin(), left.end()));
  std::vector<int> all;
  std::merge(left.begin(), left.end(), held.begin(), held.end(),
             std::back_inserter(all));
  std::vector<int> expected(1000);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
  for (const ImageSet* set : {&splits.train, &splits.validation}) {
    const std::vector<int> numbers = numbers_of(*set);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_EQ(set->labels[i], numbers[i] / 100);
    }
  }
  // Every class is in both, though the set is sorted.
  EXPECT_EQ(
      std::set(splits.validation.labels.begin(), splits.validation.labels.end())
          .size(),
      10U);
}

TEST(HoldOut, TakesTheSameOnesAlways) {
  ImageSplits splits = numbered_images(40);
  hold_out(splits, 0.1);
  // Runs of the past rest on them.
  EXPECT_EQ(numbers_of(splits.validation), (std::vector<int>{7, 8, 10, 39}));
}

TEST(HoldOut, MovesSequencesWithTheirTokens) {
  SequenceSplits splits;
  for (int i = 0; i < 50; ++i) {
    splits.train.tokens.insert(splits.train.tokens.end(),
                               static_cast<std::size_t>(i % 4),
                               static_cast<std::uint8_t>(i));
    splits.train.begin.push_back(
        static_cast<std::int64_t>(splits.train.tokens.size()));
    splits.train.labels.push_back(i);
  }
  hold_out(splits, 0.5);
  EXPECT_EQ(splits.train.count(), 25U);
  EXPECT_EQ(splits.validation.count(), 25U);
  for (const SequenceSet* set : {&splits.train, &splits.validation}) {
    ASSERT_EQ(set->begin.size(), 26U);
    EXPECT_EQ(set->begin.back(), static_cast<std::int64_t>(set->tokens.size()));
    for (std::size_t i = 0; i < set->count(); ++i) {
      EXPECT_EQ(set->begin[i + 1] - set->begin[i], set->labels[i] % 4);
      for (auto j = set->begin[i]; j < set->begin[i + 1]; ++j) {
        EXPECT_EQ(set->tokens[static_cast<std::size_t>(j)], set->labels[i]);
      }
    }
  }
}

TEST(HoldOut, TakesTheEndOfAText) {
  TextSplits splits{.train = "", .test = "test"};
  for (int i = 0; i < 100; ++i) splits.train += "nine of it\n";
  const std::string all = splits.train;
  hold_out(splits, 0.1);
  EXPECT_EQ(splits.train + splits.validation, all);
  EXPECT_EQ(splits.validation.size(), 110U);
  EXPECT_EQ(splits.test, "test");
}

TEST(HoldOut, RefusesAShareThatLeavesNothing) {
  ImageSplits images = numbered_images(4);
  EXPECT_THROW(hold_out(images, 0.1), DataError);
  EXPECT_EQ(images.train.count(), 4U);
  ImageSplits one = numbered_images(1);
  EXPECT_THROW(hold_out(one, 0.5), DataError);
  SequenceSplits none;
  EXPECT_THROW(hold_out(none, 0.5), DataError);
  TextSplits text{.train = "three", .test = "test"};
  try {
    hold_out(text, 0.1);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(),
                 "[data] task.validation 0.1 of 5 training bytes holds out 1 "
                 "and leaves 4: at least 2 of each are needed");
  }
}

}  // namespace hold_out_test
}  // namespace polyattn::data
