// Where sets are looked for, and how folders of the cache come to be.
#include "data/cache.h"

#include <gtest/gtest.h>

#include <array>

#include "data/catalogue.h"
#include "data/file.h"
#include "data/sha256.h"
#include "data/staging.h"
#include "data/support.h"
#include "data/verify.h"

namespace polyattn::data::cache_test {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::has;
using test::read_text;
using test::TemporaryFolder;
using test::TestVariable;

TEST(Cache, RootFollowsTheEnvironment) {
  const TestVariable home("HOME", "/home/someone");
  {
    const TestVariable own("POLYATTN_DATA", "/data");
    const TestVariable xdg("XDG_CACHE_HOME", "/xdg");
    EXPECT_EQ(cache_root(), "/data");
    EXPECT_EQ(cache_folder("mnist"), "/data/mnist");
  }
  const TestVariable own("POLYATTN_DATA", std::nullopt);
  {
    const TestVariable xdg("XDG_CACHE_HOME", "/xdg");
    EXPECT_EQ(cache_root(), "/xdg/polyattn");
  }
  {
    const TestVariable xdg("XDG_CACHE_HOME", "relative");
    EXPECT_EQ(cache_root(), "/home/someone/.cache/polyattn");
  }
  const TestVariable xdg("XDG_CACHE_HOME", std::nullopt);
  EXPECT_EQ(cache_root(), "/home/someone/.cache/polyattn");
  const TestVariable nowhere("HOME", std::nullopt);
  EXPECT_TRUE(has(error_of([] { cache_root(); }), "POLYATTN_DATA"));
}

TEST(Cache, RootIsAbsolute) {
  const TestVariable own("POLYATTN_DATA", "here");
  EXPECT_EQ(cache_root(), fs::current_path() / "here");
}

constexpr std::array<FileEntry, 2> kFiles{
    {{"a", 3, ""}, {"b.gz", 9, "", true}}};

class Location : public testing::Test {
 protected:
  TemporaryFolder cache_;
  TemporaryFolder system_;
  TestVariable data_{"POLYATTN_DATA", cache_.path().string()};
  TestVariable dirs_{"XDG_DATA_DIRS",
                     "relative::/nowhere:" + system_.path().string()};
  SetEntry entry_{.name = "toy",
                  .title = "",
                  .licence = "",
                  .origin = Origin::kDebian,
                  .files = kFiles};
};

TEST_F(Location, IsTheCacheOrASystemFolder) {
  EXPECT_EQ(locate(entry_).state, SetState::kAbsent);
  EXPECT_EQ(locate(entry_).path, cache_ / "toy");
  system_.write("datasets/toy/a", "abc");
  EXPECT_EQ(locate(entry_).state, SetState::kAbsent);
  system_.write("datasets/toy/b.gz", "any length");
  EXPECT_EQ(locate(entry_).state, SetState::kInstalled);
  EXPECT_EQ(locate(entry_).path, system_ / "datasets/toy");
  cache_.write("toy/a", "abc");
  cache_.write("toy/b.gz", "any length");
  EXPECT_EQ(locate(entry_).state, SetState::kFetched);
  EXPECT_EQ(require_set(entry_), cache_ / "toy");
}

TEST_F(Location, OfNpmSetsIsNeverTheSystem) {
  system_.write("datasets/toy/a", "abc");
  system_.write("datasets/toy/b.gz", "any length");
  entry_.origin = Origin::kNpm;
  EXPECT_EQ(locate(entry_).state, SetState::kAbsent);
  EXPECT_TRUE(
      has(error_of([&] { require_set(entry_); }), "polyattn data fetch toy"));
}

TEST_F(Location, OfGeneratedSetsIsTheCache) {
  entry_.origin = Origin::kGenerated;
  EXPECT_EQ(locate(entry_).state, SetState::kGenerated);
  EXPECT_EQ(require_set(entry_), cache_ / "toy");
}

TEST_F(Location, WithMissingOrOddFilesIsDamaged) {
  cache_.write("toy/a", "abc");
  EXPECT_EQ(locate(entry_).state, SetState::kDamaged);
  cache_.write("toy/b.gz", "x");
  cache_.write("toy/a", "abcd");
  EXPECT_EQ(locate(entry_).state, SetState::kDamaged);
  EXPECT_TRUE(has(error_of([&] { require_set(entry_); }),
                  "polyattn data fetch --force toy"));
}

TEST_F(Location, CountsTheFilesOfAGroup) {
  entry_.files = {};
  entry_.group = FileGroup{".txt", 2, 5, ""};
  cache_.write("toy/1.txt", "12");
  EXPECT_EQ(locate(entry_).state, SetState::kDamaged);
  cache_.write("toy/2.txt", "345");
  cache_.write("toy/other", "does not count");
  EXPECT_EQ(locate(entry_).state, SetState::kFetched);
  cache_.write("toy/3.txt", "");
  EXPECT_EQ(locate(entry_).state, SetState::kDamaged);
}

TEST(Catalogue, IsConsistent) {
  for (const SetEntry& entry : catalogue()) {
    EXPECT_EQ(find_set(catalogue(), entry.name), &entry);
    if (entry.origin == Origin::kGenerated) continue;
    EXPECT_EQ(entry.archive_sha256.size(), 64U) << entry.name;
    EXPECT_FALSE(entry.members.empty()) << entry.name;
    EXPECT_TRUE(!entry.files.empty() || entry.group) << entry.name;
    for (const FileEntry& file : entry.files) {
      EXPECT_EQ(file.sha256.size(), 64U) << file.name;
      EXPECT_EQ(file.name.ends_with(".gz"), file.gzipped) << file.name;
    }
    EXPECT_GT(entry.size(), entry.archive_size / 2) << entry.name;
  }
  EXPECT_EQ(find_set(catalogue(), "nonsense"), nullptr);
  EXPECT_TRUE(has(error_of([] { require_set("nonsense"); }), "nonsense"));
}

// As sha256sum prints it, so that anyone can check the catalogue by hand.
TEST(Verify, DigestsAGroupAsTheToolsDo) {
  const TemporaryFolder folder;
  folder.write("b.txt", "B");
  folder.write("a.txt", "A");
  folder.write("c.md", "C");
  const std::string lines =
      sha256_of("A") + "  a.txt\n" + sha256_of("B") + "  b.txt\n";
  const std::string digest = sha256_of(lines);
  const SetEntry entry{.name = "toy",
                       .title = "",
                       .licence = "",
                       .group = FileGroup{".txt", 2, 2, digest}};
  ASSERT_EQ(verify(entry, folder.path()).size(), 1U);
  EXPECT_TRUE(verify(entry, folder.path())[0].right());
  folder.write("a.txt", "a");
  const FileCheck check = verify(entry, folder.path())[0];
  EXPECT_FALSE(check.right());
  EXPECT_EQ(check.expected, digest);
  EXPECT_TRUE(has(check.problem, check.found));
}

class StagingTest : public testing::Test {
 protected:
  static std::string content_at(const fs::path& folder) {
    return read_text(folder / "file");
  }
  void put(const Staging& staging, std::string_view text) {
    write_whole(staging.content() / "file", text);
  }

  TemporaryFolder root_;
  fs::path set_ = root_ / "set";
  fs::path area_ = root_ / ".staging/set";
};

TEST_F(StagingTest, CommitMakesTheFolderAppear) {
  {
    Staging staging(set_);
    put(staging, "new");
    EXPECT_FALSE(fs::exists(set_));
    staging.commit();
    EXPECT_EQ(content_at(set_), "new");
  }
  EXPECT_FALSE(fs::exists(area_));
}

TEST_F(StagingTest, CommitReplacesTheFolder) {
  root_.write("set/file", "old");
  root_.write("set/other", "old");
  Staging staging(set_);
  put(staging, "new");
  EXPECT_EQ(content_at(set_), "old");
  staging.commit();
  EXPECT_EQ(content_at(set_), "new");
  EXPECT_FALSE(fs::exists(set_ / "other"));
}

TEST_F(StagingTest, WithoutCommitOnlyDownloadsStay) {
  {
    const Staging staging(set_);
    put(staging, "new");
    write_whole(staging.downloads() / "part", "half");
  }
  EXPECT_FALSE(fs::exists(set_));
  EXPECT_EQ(names_in(area_), (std::vector<std::string>{"downloads"}));
  const Staging staging(set_);
  EXPECT_EQ(read_text(staging.downloads() / "part"), "half");
}

TEST_F(StagingTest, LeftoversOfTheKilledAreCleared) {
  root_.write(".staging/set/content/junk", "junk");
  root_.write(".staging/set/scratch/junk", "junk");
  const Staging staging(set_);
  EXPECT_TRUE(names_in(staging.content()).empty());
  EXPECT_TRUE(names_in(staging.scratch()).empty());
}

// A file system that cannot exchange folders moves the old one away first.
TEST_F(StagingTest, AFolderThatWasMovedAwayComesBack) {
  root_.write(".staging/set/replaced/file", "old");
  { const Staging staging(set_); }
  EXPECT_EQ(content_at(set_), "old");
  root_.write(".staging/set/replaced/file", "older");
  { const Staging staging(set_); }
  EXPECT_EQ(content_at(set_), "old");
  EXPECT_FALSE(fs::exists(area_));
}

TEST_F(StagingTest, NamesTheFolderThatCannotBeMade) {
  root_.write("file", "");
  EXPECT_TRUE(has(error_of([&] { Staging staging(root_ / "file/set"); }),
                  (root_ / "file").string()));
}

}  // namespace
}  // namespace polyattn::data::cache_test
