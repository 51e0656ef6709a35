#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>

#include "base/file_descriptor.h"

namespace polyattn::base {
namespace {

[[noreturn]] void refuse(int error) {
  throw std::runtime_error(std::generic_category().message(error));
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  // Non-blocking: opening a pipe would wait for somebody to write to it.
  const FileDescriptor file(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) refuse(errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) refuse(errno);
  if (S_ISDIR(status.st_mode)) refuse(EISDIR);
  if (!S_ISREG(status.st_mode)) {
    throw std::runtime_error("it is not a regular file");
  }
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;
  void* const data =
      ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) refuse(errno);
  data_ = static_cast<const std::byte*>(data);
}

MappedFile::~MappedFile() {
  if (size_ != 0) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace polyattn::base
