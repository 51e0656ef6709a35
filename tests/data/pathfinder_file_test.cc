// Pathfinder: the file of images, and what is kept in the cache.
#include "data/pathfinder_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "data/pathfinder.h"
#include "data/sequence_support.h"
#include "data/sha256.h"

namespace polyattn::data {
namespace pathfinder_file_test {

using test::bytes_of;
using test::error_of;
using test::expect_equal;
using test::read_text;
using test::TemporaryFolder;
using test::TestCache;

PathfinderSource small() {
  return {.contour_length = 9, .train_count = 6, .test_count = 3, .seed = 7};
}

SequenceSet parse(const std::string& text) {
  return parse_pathfinder_file(bytes_of(text), "x");
}

TEST(PathfinderFile, GivesBackWhatWasWritten) {
  const TemporaryFolder folder;
  const SequenceSet set = generate_pathfinder(small()).train;
  write_pathfinder_file(folder / "x", set);
  const std::string text = read_text(folder / "x");
  EXPECT_TRUE(text.starts_with("polyattn-pathfinder 6 "));
  expect_equal(parse(text), set);
}

TEST(PathfinderFile, RefusesWhatIsNotWhole) {
  const std::string pixels(2048, 'a');
  const std::string head =
      "polyattn-pathfinder 2 " + sha256_of(std::string_view(pixels)) + "\n";
  EXPECT_EQ(parse(head + pixels).labels, (std::vector<std::int32_t>{0, 1}));
  const auto message = [](const std::string& text) {
    return error_of([&] { parse(text); });
  };
  const auto sizes = [](std::size_t count) {
    return "cannot read x: it has " + std::to_string(count) +
           " bytes of pixels, which are not whole images of 1024";
  };
  EXPECT_EQ(message(""), sizes(0));
  EXPECT_EQ(message(head), sizes(0));
  EXPECT_EQ(message(head.substr(0, 30)), sizes(0));
  EXPECT_EQ(message(head + pixels.substr(1)), sizes(2047));
  EXPECT_EQ(message(head + pixels + "a"), sizes(2049));
  const std::string line =
      "cannot read x: its first line is not that of what follows";
  EXPECT_EQ(message(head + pixels.substr(1024)), line);
  EXPECT_EQ(message(head + pixels.substr(1) + "b"), line);
  EXPECT_EQ(message("polyattn-pathfinder 2\n" + pixels), line);
}

TEST(LoadPathfinder, KeepsWhatItGenerates) {
  const TestCache cache;
  const SequenceSplits first = load_pathfinder(small());
  expect_equal(first.train, generate_pathfinder(small()).train);
  const auto folder = pathfinder_folder(small());
  EXPECT_EQ(folder, cache / "pathfinder" / "v1-9-6-3-7");
  const auto written =
      std::filesystem::last_write_time(folder / "train.pathfinder");
  const SequenceSplits again = load_pathfinder(small());
  expect_equal(again.train, first.train);
  expect_equal(again.test, first.test);
  EXPECT_EQ(again.vocabulary, 256);
  EXPECT_EQ(std::filesystem::last_write_time(folder / "train.pathfinder"),
            written);
}

TEST(LoadPathfinder, SaysWhatIsDamagedAndHowToMendIt) {
  const TestCache cache;
  load_pathfinder(small());
  const auto folder = pathfinder_folder(small());
  const std::string mend =
      "; remove the folder " + folder.string() + ", and it will be made again";
  std::filesystem::copy_file(folder / "test.pathfinder",
                             folder / "train.pathfinder",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(error_of([] { load_pathfinder(small()); }),
            "cannot read " + (folder / "train.pathfinder").string() +
                ": it has 3 images, not 6" + mend);
  std::ofstream(folder / "train.pathfinder", std::ios::app) << 'x';
  EXPECT_EQ(error_of([] { load_pathfinder(small()); }),
            "cannot read " + (folder / "train.pathfinder").string() +
                ": it has 3073 bytes of pixels, which are not whole images of "
                "1024" +
                mend);
}

TEST(LoadPathfinder, KeepsNothingThatFailed) {
  const TestCache cache;
  PathfinderSource source = small();
  source.contour_length = 15;
  EXPECT_EQ(error_of([&] { load_pathfinder(source); }),
            "[pathfinder] contour_length 15 is not in [3, 14]");
  EXPECT_FALSE(std::filesystem::exists(pathfinder_folder(source)));
}

}  // namespace pathfinder_file_test
}  // namespace polyattn::data
