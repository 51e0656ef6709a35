// From a set that is absent to one that is there, whatever happens on the way.
#include "data/fetch.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "data/fetch_fixture.h"
#include "data/file.h"
#include "data/made_files.h"
#include "data/sha256.h"

namespace polyattn::data::fetch_test {
namespace {

namespace fs = std::filesystem;
using test::has;
using test::TemporaryFolder;
using test::TestVariable;

class Fetch : public test::FetchTest {
 protected:
  // A process that fetches; its exit status as waitpid() gives it.
  pid_t start() {
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        run();
        ::_exit(0);
      } catch (...) {
        ::_exit(1);
      }
    }
    return child;
  }
  static int wait(pid_t child) {
    int status = -1;
    ::waitpid(child, &status, 0);
    return status;
  }
};

TEST_F(Fetch, DownloadsChecksAndUnpacks) {
  const FetchResult result = run();
  EXPECT_FALSE(result.was_there);
  EXPECT_EQ(result.place.state, SetState::kFetched);
  EXPECT_EQ(result.place.path, set_);
  EXPECT_TRUE(toy_.is_in(set_));
  EXPECT_FALSE(fs::exists(cache_ / ".staging/toy"));
  EXPECT_EQ(tools_.calls(),
            "npm view @scope/toy@1.0.0 dist.tarball\n"
            "curl 0 https://registry.invalid/toy/-/toy-1.0.0.tgz\n");
  EXPECT_EQ(recorder_.most, toy_.archive().size());
  EXPECT_EQ(recorder_.total, toy_.archive().size());
}

TEST_F(Fetch, DoesNothingIfTheSetIsThere) {
  run();
  const std::string calls = tools_.calls();
  EXPECT_TRUE(run().was_there);
  EXPECT_EQ(tools_.calls(), calls);
}

TEST_F(Fetch, ForceReplacesWhatIsThere) {
  run();
  std::string content = test::read_text(set_ / "a");
  content[0] ^= 1;
  cache_.write("toy/a", content);
  EXPECT_TRUE(run().was_there);
  EXPECT_FALSE(run({.force = true}).was_there);
  EXPECT_TRUE(toy_.is_in(set_));
}

TEST_F(Fetch, MendsAFolderThatLacksFiles) {
  cache_.write("toy/a", "x");
  EXPECT_FALSE(run().was_there);
  EXPECT_TRUE(toy_.is_in(set_));
}

TEST_F(Fetch, RefusesContentOfAnotherDigest) {
  std::vector<FileEntry> files(toy_.entry().files.begin(),
                               toy_.entry().files.end());
  files[1].sha256 = files[0].sha256;
  toy_.entry().files = files;
  EXPECT_TRUE(has(refusal(), "what was unpacked is wrong"));
  EXPECT_FALSE(fs::exists(set_));
}

TEST_F(Fetch, TakesAnArchiveFromElsewhere) {
  const TemporaryFolder folder;
  run({.from = folder.write("x.tgz", toy_.archive())});
  EXPECT_TRUE(toy_.is_in(set_));
  EXPECT_EQ(tools_.calls(), "");
  const std::string message =
      refusal({.from = folder.write("y.tgz", half()), .force = true});
  EXPECT_TRUE(has(message, sha256_of(half())));
  EXPECT_TRUE(
      has(refusal({.from = folder / "absent", .force = true}), "absent"));
  EXPECT_TRUE(toy_.is_in(set_));
}

// The script kills the fetching process once half of the archive is on the
// disk.
TEST_F(Fetch, CanBeKilledAndRunAgain) {
  const std::string size = std::to_string(half().size());
  tools_.add("curl", "echo \"curl\" >> \"$calls\"\nhead -c " + size +
                         " \"$archive\"\npart='" + (cache_ / kPart).string() +
                         "'\nwhile [ \"$(wc -c < \"$part\")\" -lt " + size +
                         " ]; do :; done\nkill -9 $PPID\n");
  const int status = wait(start());
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_FALSE(fs::exists(set_));
  EXPECT_EQ(locate(toy_.entry()).state, SetState::kAbsent);
  tools_.add_curl();
  run();
  EXPECT_TRUE(toy_.is_in(set_));
  EXPECT_TRUE(has(tools_.calls(), curl_call(half().size())));
}

TEST_F(Fetch, TwoAtOnceDownloadOnce) {
  const pid_t one = start();
  const pid_t two = start();
  EXPECT_EQ(wait(one), 0);
  EXPECT_EQ(wait(two), 0);
  EXPECT_TRUE(toy_.is_in(set_));
  const std::string calls = tools_.calls();
  EXPECT_EQ(std::count(calls.begin(), calls.end(), '\n'), 2) << calls;
}

TEST_F(Fetch, GeneratedSetsNeedNothing) {
  toy_.entry().origin = Origin::kGenerated;
  EXPECT_TRUE(run().was_there);
  EXPECT_FALSE(fs::exists(cache_ / ".staging"));
}

class FetchDebian : public test::FetchTest {
 protected:
  void SetUp() override {
    package_ = test::debian_package(
        {{"./usr/share/datasets/toy/a.gz", test::gzipped("content")}});
    package_digest_ = sha256_of(package_);
    toy_.entry() = {.name = "toy",
                    .title = "",
                    .licence = "",
                    .origin = Origin::kDebian,
                    .package = "dataset-toy",
                    .version = "1",
                    .archive_size = package_.size(),
                    .archive_sha256 = package_digest_,
                    .members = members_,
                    .files = files_};
    tools_.serve(package_);
    tools_.add("apt-get", R"(echo "apt-get $*" >> "$calls"
cp "$archive" dataset-toy_1_all.deb
)");
  }

  std::string package_, package_digest_;
  std::string content_digest_ = sha256_of("content");
  std::vector<Member> members_{{"usr/share/datasets/toy/a.gz", 1000}};
  std::vector<FileEntry> files_{{"a.gz", 7, content_digest_, true}};
  TestVariable dirs_{"XDG_DATA_DIRS", "/nowhere"};
};

TEST_F(FetchDebian, UnpacksThePackage) {
  EXPECT_EQ(run().place.state, SetState::kFetched);
  EXPECT_EQ(names_in(set_), (std::vector<std::string>{"a.gz"}));
  EXPECT_EQ(tools_.calls(), "apt-get download dataset-toy\n");
}

TEST_F(FetchDebian, UsesWhatIsInstalled) {
  const TemporaryFolder system;
  system.write("datasets/toy/a.gz", test::gzipped("content"));
  const TestVariable dirs("XDG_DATA_DIRS", system.path().string());
  const FetchResult result = run();
  EXPECT_TRUE(result.was_there);
  EXPECT_EQ(result.place.path, system / "datasets/toy");
  EXPECT_EQ(tools_.calls(), "");
}

TEST_F(FetchDebian, SaysWhatToInstall) {
  tools_.serve("another version");
  EXPECT_TRUE(has(refusal(), "apt install dataset-toy"));
  fs::remove(fs::path(std::getenv("PATH")) / "apt-get");
  EXPECT_TRUE(has(refusal(), "apt install dataset-toy"));
  EXPECT_FALSE(anything_kept());
}

}  // namespace
}  // namespace polyattn::data::fetch_test
