// An open file of the operating system, closed when it goes out of scope.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string_view>
#include <utility>

namespace polyattn::base {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int value) : value_(value) {}
  FileDescriptor(FileDescriptor&& other) noexcept
      : value_(std::exchange(other.value_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~FileDescriptor() {
    if (is_open()) ::close(value_);
  }

  bool is_open() const { return value_ >= 0; }
  int get() const { return value_; }

  // For who wants to know whether closing went well.
  int release() { return std::exchange(value_, -1); }

 private:
  int value_ = -1;
};

// What could not be written: all of it is there if that is empty, and else
// errno says why.
inline std::string_view write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) break;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return bytes;
}

}  // namespace polyattn::base
