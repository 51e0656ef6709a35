// IMDB reviews: the package's file, the authors' folder, errors.
#include "data/imdb.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "data/load.h"
#include "data/sequence_support.h"

namespace polyattn::data {
namespace imdb_test {

using test::error_of;
using test::expect_equal;
using test::sequence;
using test::TemporaryFolder;
using test::TestCache;

std::string read_text(const SequenceSet& set, std::size_t i) {
  std::string text;
  for (const std::uint8_t token : sequence(set, i)) {
    text += static_cast<char>(token - 1);
  }
  return text;
}

std::map<std::string, std::int32_t> labels_of(const SequenceSet& set) {
  std::map<std::string, std::int32_t> labels;
  for (std::size_t i = 0; i < set.count(); ++i) {
    labels[read_text(set, i)] = set.labels[i];
  }
  return labels;
}

std::string review(const std::string& text, int label) {
  return R"({"t":")" + text + R"(","s":)" + std::to_string(label) + "}";
}

// "review 0" to "review 39": the first half negative.
std::vector<std::string> forty() {
  std::vector<std::string> reviews;
  reviews.reserve(40);
  for (int i = 0; i < 40; ++i) {
    reviews.push_back(review("review " + std::to_string(i), i / 20));
  }
  return reviews;
}

std::string array_of(const std::vector<std::string>& reviews) {
  std::string json = "[";
  for (const std::string& one : reviews) {
    if (json.size() > 1) json += ",";
    json += one;
  }
  return json + "]";
}

SequenceSplits parse(const std::string& json, std::int64_t max_length = 100) {
  return parse_imdb_json(json, "x.json", max_length);
}

TEST(Imdb, EveryReviewIsInOneHalf) {
  const SequenceSplits splits = parse(array_of(forty()));
  EXPECT_EQ(splits.vocabulary, 257);
  EXPECT_EQ(splits.class_names,
            (std::vector<std::string>{"negative", "positive"}));
  auto train = labels_of(splits.train);
  const auto test = labels_of(splits.test);
  EXPECT_EQ(train.size(), splits.train.count());
  EXPECT_EQ(test.size(), splits.test.count());
  EXPECT_EQ(train.size() + test.size(), 40U);
  // Each half of 40 fair coins has more than 10 in all but 1 of 2000 cases.
  EXPECT_GT(train.size(), 10U);
  EXPECT_GT(test.size(), 10U);
  train.insert(test.begin(), test.end());
  EXPECT_EQ(train.size(), 40U);
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(train.at("review " + std::to_string(i)), i / 20);
  }
  // It says so, for ever: the first bit of the hash.
  for (const auto& [text, label] : test) {
    const std::vector<std::uint8_t> bytes(text.begin(), text.end());
    EXPECT_GE(base::hash_bytes(bytes), std::uint64_t{1} << 63) << text;
  }
}

TEST(Imdb, TheOrderOfTheFileDoesNotMatter) {
  auto reviews = forty();
  const SequenceSplits splits = parse(array_of(reviews));
  std::reverse(reviews.begin(), reviews.end());
  std::rotate(reviews.begin(), reviews.begin() + 7, reviews.end());
  const SequenceSplits other = parse(array_of(reviews));
  expect_equal(splits.train, other.train);
  expect_equal(splits.test, other.test);
  // The classes are mixed: both are among the first eight.
  const auto& labels = splits.train.labels;
  EXPECT_EQ(std::set(labels.begin(), labels.begin() + 8).size(), 2U);
}

TEST(Imdb, KeepsTheFirstOfEqualTexts) {
  auto reviews = forty();
  const SequenceSplits splits = parse(array_of(reviews));
  reviews.push_back(review("review 0", 0));
  reviews.push_back(review("review 1", 1));
  reviews.insert(reviews.begin() + 30, review("review 2", 1));
  const SequenceSplits other = parse(array_of(reviews));
  expect_equal(splits.train, other.train);
  expect_equal(splits.test, other.test);
}

TEST(Imdb, BytesAreMovedUpByOne) {
  auto reviews = forty();
  reviews.emplace_back(R"({"s":1,"t":"\u0000A\t\u00e9é\"\ud83d\ude00"})");
  const SequenceSplits splits = parse(array_of(reviews));
  const std::string text("\0A\t\xc3\xa9\xc3\xa9\"\xf0\x9f\x98\x80", 12);
  auto all = labels_of(splits.train);
  const auto test = labels_of(splits.test);
  all.insert(test.begin(), test.end());
  ASSERT_TRUE(all.contains(text));
  EXPECT_EQ(all.at(text), 1);
  for (const std::uint8_t token : splits.train.tokens) EXPECT_NE(token, 0);
}

// The split is that of the whole text, so that it stays when lengths change.
TEST(Imdb, CutsLongReviews) {
  const SequenceSplits whole = parse(array_of(forty()));
  const SequenceSplits cut = parse(array_of(forty()), 8);
  ASSERT_EQ(cut.train.count(), whole.train.count());
  EXPECT_EQ(cut.train.labels, whole.train.labels);
  for (std::size_t i = 0; i < cut.train.count(); ++i) {
    EXPECT_EQ(read_text(cut.train, i), read_text(whole.train, i).substr(0, 8));
  }
}

TEST(Imdb, RefusesOtherFiles) {
  const auto message = [](const std::string& json) {
    std::string why = error_of([&] { parse(json); });
    const std::string start = "cannot read x.json: ";
    const std::string end =
        R"(; reviews are an array of objects {"t": text, "s": 0 or 1})";
    EXPECT_TRUE(why.starts_with(start)) << why;
    EXPECT_TRUE(why.ends_with(end)) << why;
    if (!why.starts_with(start) || !why.ends_with(end)) return why;
    return why.substr(start.size(), why.size() - start.size() - end.size());
  };
  const auto after = [&](const std::string& second) {
    return message("[" + review("a", 0) + "," + second + "]");
  };
  EXPECT_EQ(message("{}"),
            "review 1: an object in the place of an array of reviews");
  EXPECT_EQ(message("7"), "review 1: a number out of place");
  EXPECT_EQ(message("\"t\""), "review 1: a string out of place");
  EXPECT_EQ(after("7"), "review 2: a number out of place");
  EXPECT_EQ(after("[]"),
            "review 2: an array in the place of a review or a value");
  EXPECT_EQ(after("{}"), "review 2: \"t\" or \"s\" is missing");
  EXPECT_EQ(after(R"({"t":"a"})"), "review 2: \"t\" or \"s\" is missing");
  EXPECT_EQ(after(R"({"s":0})"), "review 2: \"t\" or \"s\" is missing");
  EXPECT_EQ(after(R"({"s":0,"t":""})"), "review 2: its text is empty");
  EXPECT_EQ(after(R"({"s":2,"t":"a"})"), "review 2: \"s\" is 2, not 0 or 1");
  EXPECT_EQ(after(R"({"s":-1,"t":"a"})"), "review 2: \"s\" is -1, not 0 or 1");
  EXPECT_EQ(after(R"({"s":1.0,"t":"a"})"),
            "review 2: the number \"1.0\" in the place of 0 or 1");
  EXPECT_EQ(after(R"({"s":true,"t":"a"})"),
            "review 2: a boolean in the place of a value");
  EXPECT_EQ(after(R"({"s":null,"t":"a"})"),
            "review 2: null in the place of a value");
  EXPECT_EQ(after(R"({"s":"0","t":"a"})"), "review 2: a string out of place");
  EXPECT_EQ(after(R"({"s":0,"t":0})"), "review 2: a number out of place");
  EXPECT_EQ(after(R"({"s":0,"s":1,"t":"a"})"),
            "review 2: a number out of place");
  EXPECT_EQ(after(R"({"t":"a","t":"b","s":0})"),
            "review 2: a string out of place");
  EXPECT_EQ(after(R"({"t":{},"s":0})"),
            "review 2: an object in the place of a value");
  EXPECT_EQ(after(R"({"t":["a"],"s":0})"),
            "review 2: an array in the place of a review or a value");
  EXPECT_EQ(after(R"({"x\n":"a","s":0})"),
            "review 2: there is a key \"x\\n\" beside \"t\" and \"s\"");
  // Where exactly is told by the parser.
  const auto expect_no_json = [](const std::string& why, int number) {
    EXPECT_TRUE(why.starts_with("review " + std::to_string(number) + ": byte "))
        << why;
    EXPECT_TRUE(why.ends_with(": this is not JSON")) << why;
  };
  expect_no_json(message(""), 1);
  expect_no_json(after("{\"t\":\"\xff\",\"s\":0}"), 2);
  expect_no_json(after(R"({"t":"a","s":1e999})"), 2);
  expect_no_json(message(array_of(forty()) + "x"), 41);
  EXPECT_EQ(message(std::string(100'000, '[')),
            "review 1: an array in the place of a review or a value");
  EXPECT_EQ(error_of([] { parse("[]"); }),
            "cannot read x.json: it has no review for training");
}

TEST(Imdb, RefusesAFileThatWasCut) {
  const std::string json = array_of(forty());
  for (std::size_t length = 0; length < json.size(); ++length) {
    EXPECT_NE(error_of([&] { parse(json.substr(0, length)); }), "") << length;
  }
}

void write_folder(const TemporaryFolder& folder) {
  for (const std::string split : {"train", "test"}) {
    for (int i = 0; i < 10; ++i) {
      const std::string name = std::to_string(i) + "_7.txt";
      for (const auto& [kind, word] :
           {std::pair("/neg/", " bad "), std::pair("/pos/", " good ")}) {
        folder.write(std::string(split).append(kind).append(name),
                     std::string(split).append(word).append(name));
      }
    }
    folder.write(split + "/pos/index.html", "no review");
    folder.write(split + "/unsup/1_0.txt", "no review");
  }
  folder.write("test/pos/again_8.txt", "train bad 0_7.txt");
}

TEST(Imdb, ReadsTheFolderOfItsAuthors) {
  const TemporaryFolder folder;
  write_folder(folder);
  const SequenceSplits splits = load_imdb({.path = folder.path()});
  EXPECT_EQ(splits.vocabulary, 257);
  EXPECT_EQ(splits.train.count(), 20U);
  EXPECT_EQ(splits.test.count(), 21U);
  for (const auto& [text, label] : labels_of(splits.train)) {
    EXPECT_TRUE(text.starts_with(label == 1 ? "train good " : "train bad "));
  }
  const auto test = labels_of(splits.test);
  EXPECT_EQ(test.at("test good 3_7.txt"), 1);
  EXPECT_EQ(test.at("test bad 3_7.txt"), 0);
  EXPECT_EQ(test.at("train bad 0_7.txt"), 1);  // the split is theirs
  const auto& labels = splits.train.labels;
  EXPECT_EQ(std::set(labels.begin(), labels.begin() + 10).size(), 2U);
}

TEST(Imdb, RefusesOtherFolders) {
  const TemporaryFolder folder;
  write_folder(folder);
  const auto message = [&] {
    return error_of([&] { load_imdb({.path = folder.path()}); });
  };
  ASSERT_EQ(message(), "");
  folder.write("test/pos/a_1.txt", "");
  EXPECT_EQ(message(), "cannot read " + (folder / "test/pos/a_1.txt").string() +
                           ": the review is empty");
  folder.write("test/pos/a_1.txt", "a\xff");
  EXPECT_EQ(message(), "cannot read " + (folder / "test/pos/a_1.txt").string() +
                           ": it is not UTF-8");
  std::filesystem::remove_all(folder / "test/pos");
  EXPECT_NE(message().find((folder / "test/pos").string()), std::string::npos)
      << message();
  std::filesystem::create_directory(folder / "test/pos");
  std::filesystem::remove_all(folder / "test/neg");
  std::filesystem::create_directory(folder / "test/neg");
  EXPECT_EQ(message(), "cannot read " + folder.path().string() +
                           ": it has no review for testing");
}

TEST(Imdb, LoadsAFileOrSaysHowToFetchIt) {
  const TestCache cache;
  EXPECT_EQ(error_of([] { load_imdb({.max_length = 0}); }),
            "[imdb] max_length 0 < 1");
  EXPECT_NE(error_of([] { load_imdb({}); }).find("polyattn data fetch imdb"),
            std::string::npos);
  cache.write("mine.json", array_of(forty()));
  expect_equal(load_imdb({.path = cache / "mine.json"}).test,
               parse(array_of(forty())).test);
  EXPECT_EQ(error_of([&] { load_imdb({.path = cache / "none.json"}); }),
            "cannot read " + (cache / "none.json").string() +
                ": No such file or directory");
}

}  // namespace imdb_test
}  // namespace polyattn::data
