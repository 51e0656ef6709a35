// ListOps: the expressions that are generated.
#include "data/listops_generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/random.h"
#include "data/listops.h"
#include "data/sequence_support.h"

namespace polyattn::data {
namespace listops_generator_test {

using test::error_of;
using test::expect_equal;
using test::sequence;

// The value by another way: the text is a tree of pairs, "( left right )", and
// each pair is the application of an operator, with the arguments it has so
// far, to one more.
struct Applied {
  std::string op;              // empty for a digit
  std::vector<int> arguments;  // of the operator, or the digit
};

int value_of_list(const Applied& list) {
  std::multiset<int> sorted(list.arguments.begin(), list.arguments.end());
  if (list.op == "[MIN") return *sorted.begin();
  if (list.op == "[MAX") return *sorted.rbegin();
  if (list.op == "[SM") {
    int sum = 0;
    for (const int value : sorted) sum += value;
    return sum % 10;
  }
  const auto n = static_cast<std::ptrdiff_t>(sorted.size());
  return (*std::next(sorted.begin(), (n - 1) / 2) +
          *std::next(sorted.begin(), n / 2)) /
         2;
}

Applied apply_pairs(std::istringstream& words) {
  std::string word;
  words >> word;
  if (word.front() == '[') return {word, {}};
  if (word != "(") return {"", {std::stoi(word)}};
  Applied left = apply_pairs(words);
  if (words >> std::ws; words.peek() == ']') {
    words >> word >> word;  // and the parenthesis
    return {"", {value_of_list(left)}};
  }
  left.arguments.push_back(apply_pairs(words).arguments.front());
  words >> word;
  return left;
}

int value_by_pairs(const std::string& text) {
  std::istringstream words(text);
  return apply_pairs(words).arguments.front();
}

ListOpsSource small() {
  return {.min_length = 10,
          .max_length = 60,
          .train_count = 500,
          .test_count = 100,
          .seed = 7};
}

TEST(ListOpsGenerator, AgreesWithAnEvaluationByPairs) {
  const SequenceSplits splits = generate_listops(small());
  EXPECT_EQ(splits.vocabulary, 16);
  EXPECT_EQ(splits.class_names.size(), 10U);
  EXPECT_EQ(splits.class_names[9], "9");
  std::set<std::int32_t> labels;
  for (std::size_t i = 0; i < splits.train.count(); ++i) {
    const auto tokens = sequence(splits.train, i);
    const std::string text = listops_text(tokens);
    EXPECT_EQ(splits.train.labels[i], value_by_pairs(text)) << text;
    std::vector<std::uint8_t> again;
    parse_listops(text, again);
    EXPECT_EQ(again, tokens);
    labels.insert(splits.train.labels[i]);
  }
  EXPECT_EQ(labels.size(), 10U);
}

TEST(ListOpsGenerator, KeepsWhatItPromises) {
  const SequenceSplits splits = generate_listops(small());
  EXPECT_EQ(splits.train.count(), 500U);
  EXPECT_EQ(splits.test.count(), 100U);
  std::set<std::string> all;
  std::set<std::size_t> lengths;
  for (const SequenceSet* set : {&splits.train, &splits.test}) {
    EXPECT_EQ(set->begin.size(), set->count() + 1);
    EXPECT_EQ(set->begin.back(), static_cast<std::int64_t>(set->tokens.size()));
    for (std::size_t i = 0; i < set->count(); ++i) {
      const auto tokens = sequence(*set, i);
      all.emplace(tokens.begin(), tokens.end());
      lengths.insert(tokens.size());
    }
  }
  EXPECT_EQ(all.size(), 600U) << "an expression is there twice";
  EXPECT_GE(*lengths.begin(), 10U);
  EXPECT_LE(*lengths.rbegin(), 60U);
  EXPECT_GE(lengths.size(), 45U) << "not every length comes up";
}

// Arguments of the lists, and how deep they lie.
TEST(ListOpsGenerator, HasTheShapeOfLongRangeArena) {
  const SequenceSplits splits = generate_listops({.min_length = 501,
                                                  .max_length = 1999,
                                                  .train_count = 2000,
                                                  .test_count = 1,
                                                  .seed = 3});
  std::map<std::size_t, int> arities;
  std::array<int, 4> operators{};
  std::size_t deepest = 0;
  std::vector<std::size_t> lengths;
  for (std::size_t i = 0; i < splits.train.count(); ++i) {
    std::vector<std::size_t> open;
    const auto tokens = sequence(splits.train, i);
    lengths.push_back(tokens.size());
    for (const std::uint8_t token : tokens) {
      if (token == kListOpsEnd) {
        ++arities[open.back()];
        open.pop_back();
      }
      if (token >= kListOpsMin && token < kListOpsEnd) {
        ++operators[token - kListOpsMin];
        open.push_back(0);
      } else if (!open.empty()) {
        ++open.back();
      }
      deepest = std::max(deepest, open.size());
    }
  }
  EXPECT_EQ(deepest, 9U);  // and the digits are on the tenth level
  EXPECT_EQ(arities.begin()->first, 2U);
  EXPECT_EQ(arities.rbegin()->first, 10U);
  EXPECT_EQ(arities.size(), 9U);
  // About 300,000 lists: five deviations of a quarter are below 1 %.
  const int lists = operators[0] + operators[1] + operators[2] + operators[3];
  for (const int count : operators) EXPECT_NEAR(4.0 * count / lists, 1, 0.02);
  // Long Range Arena's own generator gives a median of 955. The deviation of a
  // median of 2000 lengths that are spread over 1500 is about 15.
  std::nth_element(lengths.begin(), lengths.begin() + 1000, lengths.end());
  EXPECT_NEAR(static_cast<double>(lengths[1000]), 955, 60);
}

TEST(ListOpsGenerator, FollowsFromTheSeed) {
  const SequenceSplits first = generate_listops(small());
  const SequenceSplits again = generate_listops(small());
  expect_equal(first.train, again.train);
  expect_equal(first.test, again.test);
  auto source = small();
  source.seed = 8;
  EXPECT_NE(generate_listops(source).test.tokens, first.test.tokens);
  // On every platform and for ever. If this changes then kListOpsVersion must.
  EXPECT_EQ(listops_text(sequence(first.test, 0)),
            "( ( ( ( ( ( ( [MAX 2 ) 9 ) 3 ) 7 ) ( ( ( ( ( ( [MED 8 ) 6 ) 1 ) 9 "
            ") 1 ) ] ) ) 0 ) ] )");
  EXPECT_EQ(base::hash_bytes(first.train.tokens), 7588522942841186078U);
}

TEST(ListOpsGenerator, TheTestSetDoesNotDependOnTheTrainingSet) {
  const SequenceSplits first = generate_listops(small());
  auto source = small();
  source.train_count = 50;
  const SequenceSplits fewer = generate_listops(source);
  expect_equal(fewer.test, first.test);
  ASSERT_EQ(fewer.train.count(), 50U);
  EXPECT_EQ(sequence(fewer.train, 49), sequence(first.train, 49));
}

// [op d d ] is the only form of four tokens: there are 400.
TEST(ListOpsGenerator, GivesUpWhenThereAreNoMore) {
  ListOpsSource source{.min_length = 4,
                       .max_length = 4,
                       .train_count = 390,
                       .test_count = 10,
                       .seed = 1};
  EXPECT_EQ(generate_listops(source).train.count(), 390U);
  source.train_count = 391;
  const std::string message = error_of([&] { generate_listops(source); });
  EXPECT_NE(message.find(" tries gave 400 different expressions of 4 to 4 "
                         "tokens, and 401 are wanted: widen min_length and "
                         "max_length, or lower train_count and test_count"),
            std::string::npos)
      << message;
  // None at all.
  source.min_length = 2;
  source.max_length = 3;
  EXPECT_NE(error_of([&] {
              generate_listops(source);
            }).find(" tries gave 0 different expressions of 2 to 3 tokens"),
            std::string::npos);
}

TEST(ListOpsGenerator, RefusesNumbersOutOfRange) {
  const auto message = [](auto change) {
    ListOpsSource source = small();
    change(source);
    return error_of([&] { generate_listops(source); });
  };
  EXPECT_EQ(message([](auto& s) { s.min_length = 0; }),
            "[listops] min_length 0 is not in [1, 1048576]");
  EXPECT_EQ(message([](auto& s) { s.max_length = 9; }),
            "[listops] max_length 9 is not in [10, 1048576]");
  EXPECT_EQ(message([](auto& s) { s.train_count = 0; }),
            "[listops] train_count 0 is not in [1, 100000000]");
  EXPECT_EQ(message([](auto& s) { s.test_count = -1; }),
            "[listops] test_count -1 is not in [1, 100000000]");
}

// Values that others have published.
TEST(Hash, IsWhatItIsElsewhere) {
  const std::vector<std::uint8_t> a = {'a'};
  EXPECT_EQ(base::hash_bytes({}), base::mix_bits(0xcbf29ce484222325));
  EXPECT_EQ(base::hash_bytes(a), base::mix_bits(0xaf63dc4c8601ec8c));
  base::Random random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317U);
  EXPECT_EQ(random.next(), 3203168211198807973U);
  EXPECT_EQ(random.next(), 9817491932198370423U);
}

}  // namespace listops_generator_test
}  // namespace polyattn::data
