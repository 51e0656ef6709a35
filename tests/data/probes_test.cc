// Probes: answers that follow from what was read, and errors.
#include "data/probes.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "data/hold_out.h"
#include "data/support.h"

namespace polyattn::data {
namespace probes_test {

using test::error_of;

ProbeSource recall(std::int64_t length, std::int64_t pairs) {
  return {.name = "recall", .length = length, .pairs = pairs};
}

std::string text_of(const ProbeSource& source, const ProbeSet& set,
                    std::size_t example) {
  std::string text;
  for (std::int64_t i = 0; i < set.length; ++i) {
    text += probe_token(
        source.name, set.tokens[example * static_cast<std::size_t>(set.length) +
                                static_cast<std::size_t>(i)]);
  }
  return text;
}

TEST(Recall, AsksForEveryKeyOnceAndItsValueAnswers) {
  for (const ProbeSource& source :
       {recall(32, 8), recall(64, 8), recall(4, 1), recall(256, 64)}) {
    const ProbeSet set = make_probes(source, 50, 1);
    ASSERT_EQ(set.count(), 50U);
    ASSERT_EQ(set.answers.size(), set.tokens.size());
    for (std::size_t e = 0; e < set.count(); ++e) {
      const auto* tokens =
          &set.tokens[e * static_cast<std::size_t>(set.length)];
      const auto* answers =
          &set.answers[e * static_cast<std::size_t>(set.length)];
      std::map<int, int> values;
      for (std::int64_t i = 0; i < 2 * source.pairs; i += 2) {
        EXPECT_EQ(answers[i], 0);
        EXPECT_EQ(answers[i + 1], 0);
        values[tokens[i]] = tokens[i + 1];
      }
      EXPECT_EQ(std::ssize(values), source.pairs);
      std::set<int> asked;
      for (std::int64_t i = 2 * source.pairs; i < source.length; ++i) {
        if (answers[i] == 0) continue;
        EXPECT_EQ(answers[i], values.at(tokens[i]));
        EXPECT_EQ(tokens[i + 1], answers[i]);
        EXPECT_TRUE(asked.insert(tokens[i]).second);
      }
      EXPECT_EQ(std::ssize(asked), source.pairs);
    }
  }
}

// Of 5000 draws each of 24 slots has a question 5000 / 3 times, give or take
// 33; five of these is one in a million.
TEST(Recall, AsksEverywhereAlike) {
  const ProbeSource source = recall(64, 8);
  const ProbeSet set = make_probes(source, 5000, 3);
  std::map<std::int64_t, int> questions;
  std::map<int, int> keys;
  for (std::size_t i = 0; i < set.tokens.size(); ++i) {
    if (set.answers[i] == 0) continue;
    ++questions[static_cast<std::int64_t>(i) % 64];
    ++keys[set.tokens[i]];
  }
  EXPECT_EQ(questions.size(), 24U);
  for (const auto& [place, count] : questions) {
    EXPECT_EQ(place % 2, 0);
    EXPECT_NEAR(count, 5000 / 3.0, 5 * 33.4) << place;
  }
  // 40000 questions of 64 keys: 625 each, give or take 23.
  EXPECT_EQ(std::ssize(keys), kProbeKeys);
  for (const auto& [key, count] : keys) EXPECT_NEAR(count, 625, 125) << key;
}

TEST(Copy, AnswersWithTheFirstHalf) {
  const ProbeSource source{.name = "copy", .length = 10};
  const ProbeSet set = make_probes(source, 20, 1);
  for (std::size_t e = 0; e < set.count(); ++e) {
    const std::string text = text_of(source, set, e);
    EXPECT_EQ(text.substr(0, 4), text.substr(6)) << text;
    EXPECT_EQ(text[5], '|');
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(set.answers[10 * e + i], 0);
      EXPECT_EQ(set.answers[10 * e + 5 + i], set.tokens[10 * e + i]);
    }
  }
}

TEST(Probes, AreFunctionsOfSourceAndSeed) {
  const ProbeSource source = recall(32, 4);
  const ProbeSet a = make_probes(source, 10, 1);
  EXPECT_EQ(a.tokens, make_probes(source, 10, 1).tokens);
  EXPECT_NE(a.tokens, make_probes(source, 10, 2).tokens);
  // These numbers must not change with a compiler or a version.
  EXPECT_EQ(text_of({.name = "copy", .length = 8},
                    make_probes({.name = "copy", .length = 8}, 1, 7), 0),
            "nlwd|nlw");
}

TEST(Probes, TrainAndTestAreOthers) {
  ProbeSource source = recall(16, 3);
  source.train_count = 40;
  source.test_count = 20;
  ProbeSplits splits = load_probes(source);
  EXPECT_EQ(splits.vocabulary, 145);
  EXPECT_EQ(splits.train.count(), 40U);
  EXPECT_EQ(splits.test.count(), 20U);
  EXPECT_NE(std::vector(splits.train.tokens.begin(),
                        splits.train.tokens.begin() + 20 * 16),
            splits.test.tokens);
  for (const std::uint8_t token : splits.train.tokens) {
    EXPECT_GT(token, 0);
    EXPECT_LT(token, splits.vocabulary);
  }
  hold_out(splits, 0.25);
  EXPECT_EQ(splits.train.count(), 30U);
  EXPECT_EQ(splits.validation.count(), 10U);
  EXPECT_EQ(splits.validation.length, 16);
  EXPECT_EQ(splits.validation.answers.size(), 160U);
  source.name = "copy";
  EXPECT_EQ(load_probes(source).vocabulary, 28);
}

TEST(Probes, RefuseWhatHasNoRoom) {
  const auto refusal = [](const ProbeSource& source) {
    return error_of([&] { make_probes(source, 1, 1); });
  };
  EXPECT_EQ(refusal(recall(30, 8)),
            "[recall] a length of 30 has no room for 8 pairs and as many "
            "questions, which take 32");
  EXPECT_EQ(refusal(recall(33, 8)),
            "[recall] a length of 33 is not even, or below 2");
  EXPECT_EQ(refusal(recall(1000, 65)),
            "[recall] 65 pairs are not from 1 to 64, the keys that there are");
  EXPECT_EQ(refusal(recall(1000, 0)),
            "[recall] 0 pairs are not from 1 to 64, the keys that there are");
  EXPECT_EQ(refusal({.name = "copy", .length = 0}),
            "[copy] a length of 0 is not even, or below 2");
  EXPECT_EQ(refusal({.name = "paste"}),
            "[data] there is no probe 'paste': it is recall or copy");
}

TEST(Probes, AreShownAsTheyAreMeant) {
  EXPECT_EQ(probe_token("recall", 1), ".");
  EXPECT_EQ(probe_token("recall", 17), "k0");
  EXPECT_EQ(probe_token("recall", 81), "v0");
  EXPECT_EQ(probe_token("recall", 144), "v63");
  EXPECT_EQ(probe_token("copy", 26), "z");
  EXPECT_EQ(probe_token("copy", 27), "|");
}

}  // namespace probes_test
}  // namespace polyattn::data
