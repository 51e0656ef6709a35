// Files are replaced, everything else is written to.
#include "base/text_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <future>
#include <stdexcept>
#include <string>

#include "base/file_descriptor.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

namespace polyattn::base {
namespace text_file_test {

namespace fs = std::filesystem;
using test::message_of;
using test::read_text;
using test::TemporaryFolder;
using test::write_text;

void check_and_write(const fs::path& path, std::string_view text) {
  check_writable(path);
  write_text_file(path, text);
}

std::string own_descriptor(const FileDescriptor& file) {
  return "/dev/fd/" + std::to_string(file.get());
}

std::uintmax_t inode_of(const fs::path& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return status.st_ino;
}

TEST(WriteTextFile, ReplacesAFileWhole) {
  const TemporaryFolder folder;
  check_and_write(folder / "a", "a long old content");
  const FileDescriptor reader(::open((folder / "a").c_str(), O_RDONLY));
  check_and_write(folder / "a", "new");
  EXPECT_EQ(read_text(folder / "a"), "new");
  EXPECT_EQ(folder.file_count(), 1);
  char byte = '\0';
  EXPECT_EQ(::pread(reader.get(), &byte, 1, 17), 1);  // the old one is whole
}

TEST(WriteTextFile, FollowsLinksAndLeavesThem) {
  const TemporaryFolder folder;
  folder.write("there/target", "old");
  fs::create_symlink("there/target", folder / "relative");
  fs::create_symlink(folder / "relative", folder / "absolute");
  const auto before = inode_of(folder / "there/target");
  const FileDescriptor old(::open((folder / "there/target").c_str(), O_RDONLY));
  check_and_write(folder / "absolute", "new");
  EXPECT_EQ(read_text(folder / "there/target"), "new");
  EXPECT_NE(inode_of(folder / "there/target"), before);  // renamed into place
  EXPECT_TRUE(fs::is_symlink(folder / "absolute"));
  EXPECT_TRUE(fs::is_symlink(folder / "relative"));
}

TEST(WriteTextFile, MakesTheFileThatALinkLeadsTo) {
  const TemporaryFolder folder;
  fs::create_symlink("target", folder / "link");
  check_and_write(folder / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(folder / "target")));
  EXPECT_EQ(read_text(folder / "target"), "new");
}

TEST(WriteTextFile, WritesIntoAPipe) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", folder / "link");
  const std::string text(1 << 20, 'x');  // more than a pipe holds
  for (const char* name : {"pipe", "link"}) {
    auto reader = std::async(std::launch::async,
                             [&] { return read_text(folder / "pipe"); });
    check_and_write(folder / name, text);
    EXPECT_EQ(reader.get(), text);
    EXPECT_TRUE(fs::is_fifo(folder / "pipe"));
  }
  EXPECT_EQ(folder.file_count(), 2);
}

TEST(WriteTextFile, WritesToADevice) {
  const TemporaryFolder folder;
  fs::path device = "/dev/null";
  if (::geteuid() == 0) {
    // One of our own: a failure would destroy it.
    struct stat status {};
    ASSERT_EQ(::stat(device.c_str(), &status), 0);
    device = folder / "null";
    if (::mknod(device.c_str(), S_IFCHR | 0600, status.st_rdev) != 0 ||
        !FileDescriptor(::open(device.c_str(), O_WRONLY)).is_open()) {
      GTEST_SKIP() << "no devices can be made here";
    }
  }
  fs::create_symlink(device, folder / "link");
  for (const fs::path& path : {device, folder / "link"}) {
    check_and_write(path, "text");
    EXPECT_TRUE(fs::is_character_file(device));
    EXPECT_TRUE(fs::is_symlink(folder / "link"));
  }
}

TEST(WriteTextFile, WritesToWhatThisProcessHasOpen) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const FileDescriptor out(ends[0]), in(ends[1]);
  check_and_write(own_descriptor(in), "text");
  char bytes[8] = "";
  EXPECT_EQ(::read(out.get(), bytes, sizeof(bytes)), 4);
  EXPECT_STREQ(bytes, "text");

  // What is there already stays, as it does when the shell opened the file.
  const TemporaryFolder folder;
  const FileDescriptor file(
      ::open((folder / "a").c_str(), O_WRONLY | O_CREAT, 0600));
  fs::create_symlink(own_descriptor(file), folder / "stdout");
  check_and_write(own_descriptor(file), "one, ");
  check_and_write(folder / "stdout", "two, ");
  EXPECT_EQ(::write(file.get(), "three", 5), 5);
  EXPECT_EQ(read_text(folder / "a"), "one, two, three");
}

TEST(WriteTextFile, RefusesWhatCheckWritableRefuses) {
  const TemporaryFolder folder;
  folder.write("file", "old");
  fs::create_directory(folder / "folder");
  fs::create_symlink("loop", folder / "loop");
  fs::create_symlink("none/a", folder / "nowhere");
  fs::create_directory_symlink("folder", folder / "link");
  const FileDescriptor readable(::open((folder / "file").c_str(), O_RDONLY));
  for (const std::string& path :
       {(folder / "none/a").string(), (folder / "file/a").string(),
        (folder / "folder").string(), (folder / "link").string(),
        (folder / "loop").string(), (folder / "nowhere").string(),
        own_descriptor(readable), std::string("/dev/fd/123456789")}) {
    const std::string start = "cannot write ";
    EXPECT_EQ(message_of<std::runtime_error>([&] {
                check_writable(path);
              }).find(start),
              0U)
        << path;
    EXPECT_EQ(message_of<std::runtime_error>([&] {
                write_text_file(path, "new");
              }).find(start),
              0U)
        << path;
  }
  EXPECT_EQ(read_text(folder / "file"), "old");
  EXPECT_EQ(folder.file_count(), 5);
}

}  // namespace text_file_test
}  // namespace polyattn::base
