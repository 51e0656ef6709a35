// What archives of strangers can and cannot do.
#include "data/archive.h"

#include <gtest/gtest.h>

#include "data/file.h"
#include "data/made_files.h"
#include "data/support.h"

namespace polyattn::data::archive_test {
namespace {

using test::error_of;
using test::has;
using test::read_text;
using test::tarball;
using test::TarEntry;
using test::TemporaryFolder;

class Archive : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(folder_ / "out"); }

  void take_out(std::string_view bytes, std::vector<Member> members,
                ArchiveKind kind = ArchiveKind::kTarball) {
    unpack({.archive = folder_.write("archive", bytes),
            .kind = kind,
            .members = members,
            .folder = folder_ / "out"});
  }
  std::string refusal(const std::vector<TarEntry>& entries,
                      std::vector<Member> members) {
    return error_of([&] { take_out(tarball(entries), members); });
  }
  std::vector<std::string> taken() { return names_in(folder_ / "out"); }

  TemporaryFolder folder_;
};

TEST_F(Archive, GivesTheWantedMembersAlone) {
  take_out(tarball({{"package/a", "A"},
                    {"package/data/b", "B"},
                    {"./package/c", "C"},
                    {"a", "another a"}}),
           {{"package/data/b", 1}, {"package/c", 1}});
  EXPECT_EQ(taken(), (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(read_text(folder_ / "out/b"), "B");
  EXPECT_EQ(read_text(folder_ / "out/c"), "C");
}

TEST_F(Archive, GivesAllFilesOfAnEnding) {
  take_out(tarball({{"data/1.txt", "1"},
                    {"data/2.txt", "22"},
                    {"data/2.json", "no"},
                    {"data/deeper/3.txt", "no"},
                    {"other/4.txt", "no"}}),
           {{"data/*.txt", 3}});
  EXPECT_EQ(taken(), (std::vector<std::string>{"1.txt", "2.txt"}));
}

TEST_F(Archive, NamesCannotLeadOutOfTheFolder) {
  folder_.write("victim.txt", "untouched");
  const std::string absolute = (folder_ / "victim.txt").string();
  take_out(tarball({{"data/../../victim.txt", "evil"},
                    {"../victim.txt", "evil"},
                    {absolute, "evil"},
                    {"data/..txt", "evil"},
                    {"data/.txt", "evil"},
                    {"data/x\n.txt", "evil"},
                    {"data/$(x).txt", "evil"},
                    {"data/good.txt", "good"}}),
           {{"data/*.txt", 100}});
  EXPECT_EQ(taken(), (std::vector<std::string>{"good.txt"}));
  EXPECT_EQ(read_text(folder_ / "victim.txt"), "untouched");
}

TEST_F(Archive, LinksAreRefused) {
  const std::vector<TarEntry> links{
      {.name = "a", .symbolic_link = "/etc/passwd"},
      {.name = "a", .hard_link = "b"},
      {.name = "a", .content = "with content", .hard_link = "b"}};
  for (const TarEntry& link : links) {
    EXPECT_TRUE(
        has(refusal({{"b", "x"}, link}, {{"a", 100}}), "not a regular file"));
  }
  EXPECT_TRUE(taken().empty());
}

TEST_F(Archive, NothingIsWrittenThroughALinkThatLiesThere) {
  folder_.write("victim.txt", "untouched");
  std::filesystem::create_symlink(folder_ / "victim.txt", folder_ / "out/a");
  EXPECT_NE(refusal({{"a", "evil"}}, {{"a", 100}}), "");
  EXPECT_EQ(read_text(folder_ / "victim.txt"), "untouched");
}

TEST_F(Archive, SizesAreLimited) {
  EXPECT_TRUE(has(refusal({{"a", "123"}}, {{"a", 2}}), "longer than expected"));
  EXPECT_TRUE(has(refusal({{"d/1.x", "12"}, {"d/2.x", "34"}}, {{"d/*.x", 3}}),
                  "\"d/2.x\" is longer than expected"));
}

TEST_F(Archive, MissingAndDoubleMembersAreErrors) {
  EXPECT_TRUE(
      has(refusal({{"a", "1"}}, {{"a", 1}, {"b", 1}}), "\"b\" is missing"));
  std::filesystem::remove(folder_ / "out/a");
  EXPECT_TRUE(has(refusal({{"a", "1"}, {"a", "2"}}, {{"a", 2}}),
                  "\"a\" is there twice"));
}

TEST_F(Archive, DamageIsAnError) {
  std::string noise;
  for (unsigned i = 0; i < 100000; ++i) {
    noise.push_back(static_cast<char>((i * i * 2654435761U) >> 24));
  }
  const std::string whole = tarball({{"a", noise}});
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{10}, whole.size() / 2}) {
    std::filesystem::remove(folder_ / "out/a");
    const std::string message = error_of([&] {
      take_out(whole.substr(0, size), {{"a", noise.size()}});
    });
    EXPECT_TRUE(has(message, (folder_ / "archive").string())) << size;
  }
  EXPECT_TRUE(has(error_of([&] { take_out("text", {{"a", 1}}); }), "damaged"));
}

TEST_F(Archive, DebianPackagesAreReadThroughBothLayers) {
  take_out(test::debian_package({{"./usr/share/a", "A"}, {"./usr/b", "B"}}),
           {{"usr/share/a", 1}}, ArchiveKind::kDebian);
  EXPECT_EQ(taken(), (std::vector<std::string>{"a"}));
  EXPECT_EQ(read_text(folder_ / "out/a"), "A");
  EXPECT_TRUE(
      has(error_of([&] {
            take_out(tarball({{"a", "A"}}), {{"a", 1}}, ArchiveKind::kDebian);
          }),
          "archive"));
}

}  // namespace
}  // namespace polyattn::data::archive_test
