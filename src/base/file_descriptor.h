// An open file of the operating system, closed when it goes out of scope.
#pragma once

#include <unistd.h>

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

}  // namespace polyattn::base
