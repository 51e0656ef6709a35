#include "data/staging.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>

#include "data/file.h"
#include "data/sets.h"

namespace polyattn::data {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kMode = 0666;  // less the umask

[[noreturn]] void refuse(const fs::path& path, const std::string& what,
                         const std::string& reason) {
  throw DataError(fmt::format("cannot {} {}: {}", what, path.string(), reason));
}

void sync(const fs::path& path) {
  const base::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  // EINVAL: a file system without this notion.
  if (!file.is_open() || (::fsync(file.get()) != 0 && errno != EINVAL)) {
    refuse(path, "force to the disk", std::strerror(errno));
  }
}

void sync_tree(const fs::path& folder) {
  for (const std::string& name : names_in(folder)) {
    const fs::path path = folder / name;
    std::error_code error;
    if (fs::is_directory(fs::symlink_status(path, error))) {
      sync_tree(path);
    } else {
      sync(path);
    }
  }
  sync(folder);
}

void remove_tree(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) refuse(path, "remove", error.message());
}

bool entry_is_there(const fs::path& path) {
  std::error_code error;
  return fs::symlink_status(path, error).type() > fs::file_type::not_found;
}

void move(const fs::path& from, const fs::path& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) {
    refuse(from, fmt::format("rename to {}", to.string()),
           std::strerror(errno));
  }
}

}  // namespace

Staging::Staging(fs::path destination, const std::function<void()>& on_wait)
    : destination_(std::move(destination)),
      folder_(destination_.parent_path() / ".staging" /
              destination_.filename()) {
  create_folder(folder_.parent_path());
  lock(on_wait);
  recover();
  remove_tree(content());
  remove_tree(scratch());
  create_folder(content());
  create_folder(scratch());
  create_folder(downloads());
}

Staging::~Staging() {
  std::error_code ignored;  // The next process will try again.
  fs::remove_all(content(), ignored);
  fs::remove_all(scratch(), ignored);
  fs::remove(downloads(), ignored);  // only if it is empty
  fs::remove(folder_, ignored);
}

// The file of the lock is never removed: a process that waits for the old file
// and one that creates a new one would both have "the" lock.
void Staging::lock(const std::function<void()>& on_wait) {
  const fs::path path = folder_.string() + ".lock";
  lock_ = base::FileDescriptor(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kMode));
  if (!lock_.is_open()) refuse(path, "open", std::strerror(errno));
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return;
  if (errno == EWOULDBLOCK) {
    if (on_wait) on_wait();
    while (::flock(lock_.get(), LOCK_EX) != 0) {
      if (errno != EINTR) refuse(path, "lock", std::strerror(errno));
    }
    return;
  }
  refuse(path, "lock", std::strerror(errno));
}

// Killed between the two steps of swap_in(): the old content goes back.
void Staging::recover() const {
  if (entry_is_there(replaced()) && !entry_is_there(destination_)) {
    move(replaced(), destination_);
  }
  remove_tree(replaced());
}

void Staging::commit() {
  sync_tree(content());
  swap_in();
  sync(destination_.parent_path());
  remove_tree(folder_);
}

void Staging::swap_in() const {
  if (!entry_is_there(destination_)) return move(content(), destination_);
  if (::renameat2(AT_FDCWD, content().c_str(), AT_FDCWD, destination_.c_str(),
                  RENAME_EXCHANGE) == 0) {
    return;
  }
  // Not every file system can exchange.
  move(destination_, replaced());
  move(content(), destination_);
}

}  // namespace polyattn::data
