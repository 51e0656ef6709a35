// The old content or the new one, and no temporary file left.
#include "base/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "support/message_of.h"
#include "support/temporary_folder.h"

namespace polyattn::base {
namespace {

using test::message_of;
using test::read_text;
using test::TemporaryFolder;
using test::write_text;

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// Makes every write beyond this size of a file fail, as a full disk would.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &old_);
    rlimit limit = old_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit old_{};
  void (*handler_)(int) = nullptr;
};

TEST(AtomicFile, AppearsAtCommit) {
  const TemporaryFolder folder;
  {
    AtomicFile file(folder / "a");
    file.write(as_bytes("one, "));
    file.write({});
    file.write(as_bytes("two"));
    EXPECT_FALSE(std::filesystem::exists(folder / "a"));
    EXPECT_EQ(folder.file_count(), 1);
    file.commit();
    EXPECT_EQ(read_text(folder / "a"), "one, two");
    EXPECT_EQ(folder.file_count(), 1);
  }
  EXPECT_EQ(read_text(folder / "a"), "one, two");
}

TEST(AtomicFile, ReplacesTheOldContentAtCommit) {
  const TemporaryFolder folder;
  write_text(folder / "a", "a long old content");
  AtomicFile file(folder / "a");
  file.write(as_bytes("new"));
  EXPECT_EQ(read_text(folder / "a"), "a long old content");
  file.commit();
  EXPECT_EQ(read_text(folder / "a"), "new");
}

TEST(AtomicFile, LeavesNothingWithoutCommit) {
  const TemporaryFolder folder;
  write_text(folder / "a", "old");
  for (const char* name : {"a", "b"}) {
    AtomicFile file(folder / name);
    file.write(as_bytes("new"));
    EXPECT_GE(folder.file_count(), 2);
  }
  EXPECT_EQ(read_text(folder / "a"), "old");
  EXPECT_EQ(folder.file_count(), 1);
}

TEST(AtomicFile, WritesAnEmptyFile) {
  const TemporaryFolder folder;
  AtomicFile(folder / "a").commit();
  EXPECT_TRUE(std::filesystem::is_empty(folder / "a"));
}

TEST(AtomicFile, LeavesTheOldContentWhenAWriteFails) {
  const TemporaryFolder folder;
  write_text(folder / "a", "old");
  const std::string path = (folder / "a").string();
  const std::string message = message_of<std::system_error>([&] {
    const FileSizeLimit limit(1000);
    AtomicFile file(path);
    // The first part fits, the second fits in part.
    file.write(as_bytes(std::string(600, 'x')));
    file.write(as_bytes(std::string(600, 'x')));
    file.commit();
  });
  EXPECT_EQ(message, "cannot write " + path + ": File too large");
  EXPECT_EQ(read_text(folder / "a"), "old");
  EXPECT_EQ(folder.file_count(), 1);
}

TEST(AtomicFile, RefusesWhereItCannotWrite) {
  const TemporaryFolder folder;
  write_text(folder / "file", "old");
  std::filesystem::create_directory(folder / "folder");
  const auto message = [&](const std::string& name) {
    return message_of<std::system_error>(
        [&] { const AtomicFile file(folder / name); });
  };
  const auto expected = [&](const std::string& name, const std::string& why) {
    return "cannot write " + (folder / name).string() + ": " + why;
  };
  EXPECT_EQ(message("none/a"), expected("none/a", "No such file or directory"));
  EXPECT_EQ(message("file/a"), expected("file/a", "Not a directory"));
  EXPECT_EQ(message("folder"), expected("folder", "Is a directory"));
  EXPECT_EQ(message("folder/"), expected("folder/", "Is a directory"));
  const std::string long_name(252, 'a');  // fits, but not with a suffix
  EXPECT_EQ(message(long_name), expected(long_name, "File name too long"));
  EXPECT_EQ(folder.file_count(), 2);
  EXPECT_TRUE(std::filesystem::is_empty(folder / "folder"));
}

// The folder in which a name without one is, and a temporary file for each.
TEST(AtomicFile, TakesTurns) {
  const TemporaryFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder / "");
  AtomicFile first("a"), second("a");
  std::filesystem::current_path(before);
  EXPECT_EQ(folder.file_count(), 2);
  first.write(as_bytes("first"));
  second.write(as_bytes("second"));
  second.commit();
  EXPECT_EQ(read_text(folder / "a"), "second");
  first.commit();
  EXPECT_EQ(read_text(folder / "a"), "first");
  EXPECT_EQ(folder.file_count(), 1);
}

TEST(AtomicFile, HasTheModeOfAnyNewFile) {
  const TemporaryFolder folder;
  const mode_t mask = ::umask(027);
  AtomicFile(folder / "a").commit();
  ::umask(mask);
  struct stat status {};
  ASSERT_EQ(::stat((folder / "a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640U);
}

TEST(AtomicFile, ReplacesASymbolicLink) {
  const TemporaryFolder folder;
  write_text(folder / "target", "old");
  std::filesystem::create_symlink("target", folder / "link");
  AtomicFile file(folder / "link");
  file.write(as_bytes("new"));
  file.commit();
  EXPECT_EQ(read_text(folder / "target"), "old");
  EXPECT_EQ(read_text(folder / "link"), "new");
  EXPECT_FALSE(std::filesystem::is_symlink(folder / "link"));
}

}  // namespace
}  // namespace polyattn::base
