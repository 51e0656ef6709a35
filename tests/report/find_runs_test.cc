// Folders, comparisons, links, and the names of the runs in them.
#include "report/find_runs.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "report/files.h"
#include "support.h"

namespace polyattn::report {
namespace find_runs_test {

namespace fs = std::filesystem;
using test::message_of;
using test::TemporaryFolder;

std::vector<std::string> names_of(const Search& search) {
  std::vector<std::string> names;
  for (const FoundRun& run : search.runs) names.push_back(run.name);
  return names;
}

using Names = std::vector<std::string>;

class FindRuns : public testing::Test {
 protected:
  fs::path make(const std::string& name) {
    return folder_.write(name + "/run.json", "{}").parent_path();
  }
  fs::path root() const { return fs::canonical(folder_.path()); }

  TemporaryFolder folder_;
};

TEST_F(FindRuns, ARunIsItself) {
  const fs::path run = make("runs/cubic");
  EXPECT_EQ(names_of(find_runs({run})), (Names{"cubic"}));
  EXPECT_EQ(find_runs({run}).runs[0].folder, fs::canonical(run));
}

TEST_F(FindRuns, AComparisonIsItsRuns) {
  make("c/softmax-seed2");
  make("c/softmax-seed1");
  folder_.write("c/report.md", "");
  folder_.write("c/other/notes.txt", "");
  EXPECT_EQ(names_of(find_runs({folder_ / "c"})),
            (Names{"softmax-seed1", "softmax-seed2"}));
}

TEST_F(FindRuns, TheRunsOfASearchAreLeftOut) {
  make("c/x-seed2");
  make("c/grid/x-lr-1e-3-seed1");
  EXPECT_EQ(names_of(find_runs({folder_ / "c"})),
            (Names{"grid/x-lr-1e-3-seed1", "x-seed2"}));
  folder_.write("c/grid.json", "{}");
  EXPECT_EQ(names_of(find_runs({folder_ / "c"})), (Names{"x-seed2"}));
  EXPECT_EQ(names_of(find_runs({folder_ / "c/grid"})),
            (Names{"x-lr-1e-3-seed1"}));
}

TEST_F(FindRuns, AFolderOfComparisonsHasPathsForNames) {
  make("runs/b/x-seed1");
  make("runs/a/x-seed1");
  make("runs/single");
  EXPECT_EQ(names_of(find_runs({folder_ / "runs"})),
            (Names{"a/x-seed1", "b/x-seed1", "single"}));
}

TEST_F(FindRuns, SeveralFoldersHaveTheirCommonFolderLeftOut) {
  const fs::path a = make("runs/a/x-seed1");
  const fs::path b = make("runs/b/x-seed1");
  EXPECT_EQ(names_of(find_runs({b, a})), (Names{"b/x-seed1", "a/x-seed1"}));
}

TEST_F(FindRuns, EachRunIsTakenOnce) {
  const fs::path run = make("runs/a");
  EXPECT_EQ(names_of(find_runs({run, folder_ / "runs", run / "."})),
            (Names{"a"}));
}

TEST_F(FindRuns, LooksThreeLevelsDeep) {
  make("1/2/3");
  make("1/2/x/4");
  EXPECT_EQ(names_of(find_runs({folder_.path()})), (Names{"3"}));
}

TEST_F(FindRuns, DoesNotLookIntoRunsAndHiddenFolders) {
  make("c/a");
  make("c/a/checkpoints");
  make("c/.trash");
  EXPECT_EQ(names_of(find_runs({folder_ / "c"})), (Names{"a"}));
}

TEST_F(FindRuns, LinksInACircleEnd) {
  make("runs/a");
  fs::create_directory_symlink("..", folder_ / "runs/up");
  fs::create_directory_symlink("a", folder_ / "runs/again");
  EXPECT_EQ(names_of(find_runs({folder_ / "runs"})), (Names{"a"}));
}

TEST_F(FindRuns, FollowsALinkThatIsNamed) {
  make("elsewhere/a");
  fs::create_directory(folder_ / "runs");
  fs::create_directory_symlink(root() / "elsewhere", folder_ / "runs/link");
  EXPECT_EQ(names_of(find_runs({folder_ / "runs"})), (Names{"a"}));
}

TEST_F(FindRuns, WarnsOfHalfARun) {
  make("c/a");
  folder_.write("c/b/metrics.jsonl", "");
  const Search search = find_runs({folder_ / "c"});
  EXPECT_EQ(names_of(search), (Names{"a"}));
  ASSERT_EQ(search.warnings.size(), 1U);
  EXPECT_EQ(search.warnings[0],
            (root() / "c/b").string() +
                " has metrics.jsonl but no run.json: it is left out");
}

TEST_F(FindRuns, AFolderThatIsNoneIsAnError) {
  folder_.write("file", "");
  EXPECT_EQ(
      message_of<std::runtime_error>([&] { find_runs({folder_ / "absent"}); }),
      "cannot read " + (folder_ / "absent").string() +
          ": there is no such folder");
  EXPECT_EQ(
      message_of<std::runtime_error>([&] { find_runs({folder_ / "file"}); }),
      "cannot read " + (folder_ / "file").string() + ": it is no folder");
}

TEST_F(FindRuns, NamesAreUtf8AndNeverEqual) {
  make("c/a\xFF");
  make("c/a\xFE");
  make("c/</script>\n\"");
  EXPECT_EQ(names_of(find_runs({folder_ / "c"})),
            (Names{"</script>\n\"", "a\xEF\xBF\xBD", "a\xEF\xBF\xBD (2)"}));
}

TEST_F(FindRuns, TheDashboardStaysInItsFolder) {
  make("outside/a");
  make("runs/b");
  fs::create_directory_symlink(root() / "outside", folder_ / "runs/link");
  fs::create_directory_symlink("../outside/a", folder_ / "runs/other");
  fs::create_directory_symlink("b", folder_ / "runs/inner");
  const Search search = find_runs_beneath(root() / "runs");
  EXPECT_EQ(names_of(search), (Names{"b"}));
  EXPECT_EQ(search.warnings.size(), 2U);
}

TEST_F(FindRuns, TheDashboardMayHaveARunItself) {
  EXPECT_EQ(names_of(find_runs_beneath(fs::canonical(make("cubic")))),
            (Names{"cubic"}));
  EXPECT_TRUE(find_runs_beneath(root() / "absent").runs.empty());
}

TEST_F(FindRuns, TooManyRunsAreCut) {
  for (std::size_t i = 0; i <= kMaxRuns; ++i) make("c/" + std::to_string(i));
  const Search search = find_runs({folder_ / "c"});
  EXPECT_EQ(search.runs.size(), kMaxRuns);
  EXPECT_EQ(search.warnings.size(), 1U);
}

TEST(Files, BeneathIsByWholeNames) {
  EXPECT_TRUE(is_beneath("/a/b/c", "/a/b"));
  EXPECT_TRUE(is_beneath("/a/b", "/a/b"));
  EXPECT_TRUE(is_beneath("/a", "/"));
  EXPECT_FALSE(is_beneath("/a/bc", "/a/b"));
  EXPECT_FALSE(is_beneath("/a", "/a/b"));
  EXPECT_FALSE(is_beneath("", "/a"));
}

TEST_F(FindRuns, FilesOutsideAreNotOpened) {
  folder_.write("secret", "secret");
  folder_.write("runs/a/plain", "text");
  fs::create_symlink(root() / "secret", folder_ / "runs/a/link");
  fs::create_symlink("plain", folder_ / "runs/a/inner");
  const fs::path runs = root() / "runs";
  EXPECT_EQ(read_file(runs / "a/plain", 10, runs), "text");
  EXPECT_EQ(read_file(runs / "a/inner", 10, runs), "text");
  EXPECT_EQ(read_file(runs / "a/link", 10, {}), "secret");
  EXPECT_EQ(message_of<std::runtime_error>(
                [&] { read_file(runs / "a/link", 10, runs); }),
            "cannot read " + (runs / "a/link").string() + ": it leads out of " +
                runs.string());
}

TEST_F(FindRuns, OnlyFilesAreReadAndNotTooLongOnes) {
  const fs::path file = folder_.write("file", "12345");
  EXPECT_EQ(read_file(file, 5, {}), "12345");
  EXPECT_NE(message_of<std::runtime_error>([&] { read_file(file, 4, {}); }),
            "");
  EXPECT_NE(
      message_of<std::runtime_error>([&] { read_file(folder_.path(), 4, {}); }),
      "");
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_NE(message_of<std::runtime_error>([&] { read_file(pipe, 4, {}); }),
            "");
}

}  // namespace find_runs_test
}  // namespace polyattn::report
