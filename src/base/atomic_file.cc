#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <string_view>
#include <system_error>
#include <utility>

namespace polyattn::base {
namespace {

// More leftovers of killed programs than this are a case for a person.
constexpr int kMaxAttempts = 1000;
constexpr mode_t kMode = 0666;  // less the umask

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path)
    : path_(std::move(path)), name_(path_.filename().string()) {
  // The folder is opened first: if it cannot be synced in the end, then it is
  // better to know that now.
  folder_ = FileDescriptor(
      ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder_.is_open()) refuse(errno);
  struct stat status {};
  const bool exists = ::fstatat(folder_.get(), name_.c_str(), &status, 0) == 0;
  if (name_.empty() || (exists && S_ISDIR(status.st_mode))) refuse(EISDIR);
  create_temporary();
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlinkat(folder_.get(), temporary_.c_str(), 0);
}

// O_EXCL, not a random name, keeps others out: threads, processes, and
// processes of the same id in other containers.
void AtomicFile::create_temporary() {
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    const std::string candidate = name_ + "." + std::to_string(::getpid()) +
                                  "." + std::to_string(attempt) + ".tmp";
    file_ = FileDescriptor(::openat(folder_.get(), candidate.c_str(),
                                    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                                    kMode));
    if (file_.is_open()) {
      temporary_ = candidate;
      return;
    }
    if (errno != EEXIST) break;
  }
  refuse(errno);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                              bytes.size());
  if (!write_all(file_.get(), text).empty()) refuse(errno);
}

void AtomicFile::commit() {
  if (::fsync(file_.get()) != 0) refuse(errno);
  if (::close(file_.release()) != 0) refuse(errno);
  if (::renameat(folder_.get(), temporary_.c_str(), folder_.get(),
                 name_.c_str()) != 0) {
    refuse(errno);
  }
  temporary_.clear();
  // EINVAL: a file system without this notion.
  if (::fsync(folder_.get()) != 0 && errno != EINVAL) refuse(errno);
}

void AtomicFile::refuse(int error) const {
  throw std::system_error(error, std::generic_category(),
                          "cannot write " + path_.string());
}

}  // namespace polyattn::base
