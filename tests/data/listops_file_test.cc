// ListOps: files, and what is kept in the cache.
#include "data/listops_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "data/listops_generator.h"
#include "data/sequence_support.h"

namespace polyattn::data {
namespace listops_file_test {

using test::error_of;
using test::expect_equal;
using test::read_text;
using test::TemporaryFolder;
using test::TestCache;

ListOpsSource small() {
  return {.min_length = 10,
          .max_length = 60,
          .train_count = 500,
          .test_count = 100,
          .seed = 7};
}

SequenceSet parse(std::string_view text) {
  return parse_listops_file(text, "x.tsv", 100);
}

TEST(ListOpsFile, ReadsBothEndsOfLines) {
  const SequenceSet set =
      parse("Source\tTarget\n( ( ( [MAX 4 ) 3 ) ] )\t4\n7\t7\n");
  EXPECT_EQ(set.tokens, (std::vector<std::uint8_t>{12, 5, 4, 15, 8}));
  EXPECT_EQ(set.begin, (std::vector<std::int64_t>{0, 4, 5}));
  EXPECT_EQ(set.labels, (std::vector<std::int32_t>{4, 7}));
  expect_equal(
      set, parse("Source\tTarget\r\n( ( ( [MAX 4 ) 3 ) ] )\t4\r\n7\t7\r\n"));
  expect_equal(set, parse("Source\tTarget\n[MAX 4 3 ]\t4\n7\t7"));
}

TEST(ListOpsFile, RefusesAndNamesTheLine) {
  const auto message = [](std::string_view text) {
    return error_of([&] { parse(text); });
  };
  const std::string start = "cannot read x.tsv: ";
  EXPECT_EQ(message(""), start + "line 1: it is not \"Source<TAB>Target\"");
  EXPECT_EQ(message("Source Target\n"),
            start + "line 1: it is not \"Source<TAB>Target\"");
  EXPECT_EQ(message("Source\tTarget\n"), start + "it has no expressions");
  const std::string head = "Source\tTarget\n7\t7\n";
  EXPECT_EQ(message(head + "\n"),
            start +
                "line 3: there is no tab between an expression and its "
                "value");
  EXPECT_EQ(message(head + "8\t7\n"),
            start + "line 3: the value is given as \"7\", but it is 8");
  EXPECT_EQ(message(head + "8\t08\n"),
            start + "line 3: the value is given as \"08\", but it is 8");
  EXPECT_EQ(message(head + "8\t8\t8\n"),
            start + "line 3: the value is given as \"8\\t8\", but it is 8");
  EXPECT_EQ(message(head + "[SM 9 9 ]\t18\n"),
            start + "line 3: the value is given as \"18\", but it is 8");
  EXPECT_EQ(message(head + "[SM 9\t9\n"),
            start + "line 3: 1 of its lists have no end, \"]\"");
  EXPECT_EQ(message(head + "[MUL 2 3 ]\t6\n").substr(0, 50),
            start + "line 3: column 1: \"[MUL\" is no ");
  EXPECT_EQ(error_of([&] {
              parse_listops_file("Source\tTarget\n[SM 1 2 ]\t3\n", "x.tsv", 3);
            }),
            start + "line 2: the expression has 4 tokens, but max_length is 3");
}

// A file that was cut off is an error, or has the first of its expressions.
TEST(ListOpsFile, SeesWhereAFileWasCut) {
  const TemporaryFolder folder;
  auto source = small();
  source.train_count = source.test_count = 3;
  const SequenceSet set = generate_listops(source).train;
  write_listops_file(folder / "a.tsv", set);
  const std::string text = read_text(folder / "a.tsv");
  expect_equal(read_listops_file(folder / "a.tsv", 60), set);
  int accepted = 0;
  for (std::size_t length = 0; length < text.size(); ++length) {
    SequenceSet part;
    const std::string why =
        error_of([&] { part = parse(text.substr(0, length)); });
    if (!why.empty()) continue;
    ++accepted;
    ASSERT_GT(part.count(), 0U);
    EXPECT_TRUE(
        std::equal(part.tokens.begin(), part.tokens.end(), set.tokens.begin()));
    EXPECT_TRUE(
        std::equal(part.labels.begin(), part.labels.end(), set.labels.begin()));
  }
  EXPECT_EQ(accepted, 5);  // before or behind each newline
  EXPECT_EQ(error_of([&] { read_listops_file(folder / "none", 60); }),
            "cannot read " + (folder / "none").string() +
                ": No such file or directory");
}

TEST(LoadListOps, KeepsWhatItGenerates) {
  const TestCache cache;
  const auto folder = listops_folder(small());
  EXPECT_EQ(folder, cache / "listops" / "v1-10-60-500-100-7");
  const SequenceSplits made = load_listops(small());
  expect_equal(made.train, generate_listops(small()).train);
  ASSERT_TRUE(std::filesystem::exists(folder / "basic_train.tsv"));
  ASSERT_TRUE(std::filesystem::exists(folder / "basic_test.tsv"));
  const auto time = std::filesystem::last_write_time(folder);
  const SequenceSplits read = load_listops(small());
  expect_equal(read.train, made.train);
  expect_equal(read.test, made.test);
  EXPECT_EQ(read.vocabulary, 16);
  EXPECT_EQ(read.class_names, made.class_names);
  EXPECT_EQ(std::filesystem::last_write_time(folder), time);
  // It is read, not made again: what is kept is another set now.
  std::filesystem::copy_file(folder / "basic_test.tsv",
                             folder / "basic_train.tsv",
                             std::filesystem::copy_options::overwrite_existing);
  const std::string train = (folder / "basic_train.tsv").string();
  EXPECT_EQ(error_of([] { load_listops(small()); }),
            "cannot read " + train + ": it has 100 expressions, not 500; " +
                "remove the folder " + folder.string() +
                ", and it will be made again");
  std::filesystem::remove_all(folder);
  expect_equal(load_listops(small()).train, made.train);
  const std::string text = read_text(folder / "basic_test.tsv");
  cache.write("listops/v1-10-60-500-100-7/basic_test.tsv",
              text.substr(0, text.rfind('\n', text.size() - 2) + 1));
  EXPECT_NE(error_of([] {
              load_listops(small());
            }).find("basic_test.tsv: it has 99 expressions, not 100; "),
            std::string::npos);
}

TEST(LoadListOps, KeepsNothingThatFailed) {
  const TestCache cache;
  auto source = small();
  source.min_length = 2;
  source.max_length = 3;
  EXPECT_NE(error_of([&] { load_listops(source); }), "");
  EXPECT_FALSE(std::filesystem::exists(listops_folder(source)));
}

TEST(LoadListOps, ReadsAFolder) {
  const TemporaryFolder folder;
  folder.write("basic_train.tsv", "Source\tTarget\r\n[MAX 4 3 ]\t4\r\n");
  ListOpsSource source{.max_length = 10, .path = folder.path()};
  EXPECT_EQ(error_of([&] { load_listops(source); }),
            "cannot read " + (folder / "basic_test.tsv").string() +
                ": No such file or directory");
  folder.write("basic_test.tsv", "Source\tTarget\r\n7\t7\r\n8\t8\r\n");
  const SequenceSplits splits = load_listops(source);
  EXPECT_EQ(splits.train.count(), 1U);
  EXPECT_EQ(splits.test.labels, (std::vector<std::int32_t>{7, 8}));
  EXPECT_EQ(splits.vocabulary, 16);
  source.max_length = 3;
  EXPECT_EQ(error_of([&] { load_listops(source); }),
            "cannot read " + (folder / "basic_train.tsv").string() +
                ": line 2: the expression has 4 tokens, but max_length is 3");
}

}  // namespace listops_file_test
}  // namespace polyattn::data
