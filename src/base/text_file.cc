#include "base/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <span>
#include <stdexcept>
#include <system_error>

#include "base/atomic_file.h"

namespace polyattn::base {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_file(const fs::path& path, const std::string& why) {
  throw std::runtime_error(
      fmt::format("cannot read {}: {}", path.string(), why));
}

[[noreturn]] void refuse_to_write(const fs::path& path, int error) {
  throw std::system_error(error, std::generic_category(),
                          "cannot write " + path.string());
}

// Where a path leads.
struct Destination {
  fs::path path;        // no symbolic link
  int descriptor = -1;  // of an open file of this process
  bool is_file = true;  // or nothing yet, or a folder, which is refused later
};

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

// N of /dev/fd/N, which is /proc/self/fd/N; else -1.
int descriptor_of(const fs::path& folder, const fs::path& path) {
  std::error_code none;
  const fs::path open_files = fs::canonical("/proc/self/fd", none);
  if (none || folder != open_files) return -1;
  const std::string name = path.filename().string();
  int number = -1;
  const auto [end, error] =
      std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && *end == '\0' ? number : -1;
}

// Link by link: the last one may lead to a file that is still to be made, and
// those to open files cannot be followed by their text.
Destination destination_of(const fs::path& path) {
  constexpr int kMaxLinks = 40;  // as Linux
  Destination result{.path = path};
  std::error_code error;
  for (int i = 0; i <= kMaxLinks; ++i) {
    const fs::path folder = fs::canonical(folder_of(result.path), error);
    if (error) return result;
    result.descriptor = descriptor_of(folder, result.path);
    if (result.descriptor >= 0) return result;
    const fs::file_status status = fs::symlink_status(result.path, error);
    if (!fs::is_symlink(status)) {
      result.is_file = !fs::exists(status) || fs::is_regular_file(status) ||
                       fs::is_directory(status);
      return result;
    }
    result.path = folder / fs::read_symlink(result.path);
  }
  refuse_to_write(path, ELOOP);
}

bool can_be_written(const Destination& destination) {
  if (destination.descriptor >= 0) {
    const int flags = ::fcntl(destination.descriptor, F_GETFL);
    if (flags >= 0 && (flags & O_ACCMODE) == O_RDONLY) errno = EBADF;
    return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
  }
  if (!destination.is_file) {
    return ::access(destination.path.c_str(), W_OK) == 0;
  }
  return ::access(folder_of(destination.path).c_str(), W_OK | X_OK) == 0;
}

}  // namespace

FileDescriptor open_regular_file(const fs::path& path) {
  // Without O_NONBLOCK a pipe would be waited for.
  FileDescriptor file(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (!file.is_open() || ::fstat(file.get(), &status) != 0) {
    refuse_file(path, std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) refuse_file(path, "not a file");
  return file;
}

std::string read_open_file(const FileDescriptor& file, const fs::path& path,
                           std::size_t max_bytes) {
  constexpr std::size_t kPiece = 1 << 16;
  std::string text;
  // One more than allowed: the size may change on the way, or be a lie.
  while (text.size() <= max_bytes) {
    const std::size_t had = text.size();
    text.resize(had + kPiece);
    const ssize_t got = ::read(file.get(), text.data() + had, kPiece);
    text.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse_file(path, std::strerror(errno));
    if (got == 0) return text;
  }
  refuse_file(path, fmt::format("it has more than {} bytes", max_bytes));
}

std::string read_text_file(const fs::path& path, std::size_t max_bytes) {
  return read_open_file(open_regular_file(path), path, max_bytes);
}

void write_text_file(const fs::path& path, std::string_view text) {
  const Destination destination = destination_of(path);
  if (destination.descriptor < 0 && destination.is_file) {
    AtomicFile file(destination.path);
    file.write(std::as_bytes(std::span(text)));
    file.commit();
    return;
  }
  // A copy of the open file keeps its place: what was written to it stays.
  const FileDescriptor file(
      destination.descriptor >= 0
          ? ::fcntl(destination.descriptor, F_DUPFD_CLOEXEC, 0)
          : ::open(destination.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (!file.is_open()) refuse_to_write(path, errno);
  if (!write_all(file.get(), text).empty()) refuse_to_write(path, errno);
}

void check_writable(const fs::path& path) {
  const Destination destination = destination_of(path);
  std::error_code ignored;
  if (fs::is_directory(destination.path, ignored)) {
    throw std::runtime_error(
        fmt::format("cannot write {}: it is a directory", path.string()));
  }
  if (can_be_written(destination)) return;
  const int error = errno;
  if (destination.descriptor >= 0 || !destination.is_file) {
    refuse_to_write(path, error);
  }
  throw std::runtime_error(
      fmt::format("cannot write {}: folder {}: {}", path.string(),
                  folder_of(destination.path).string(), std::strerror(error)));
}

}  // namespace polyattn::base
