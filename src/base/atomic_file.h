// A file that appears whole or not at all. It is written beside its
// destination and renamed when it is complete: readers see the old content or
// the new, and after a crash the disk holds one of them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "base/file_descriptor.h"

namespace polyattn::base {

// Every function throws std::system_error; what() begins "cannot write path".
class AtomicFile {
 public:
  // Creates the temporary file, in the folder of `path`. A symbolic link at
  // `path` will be replaced, not followed.
  explicit AtomicFile(std::filesystem::path path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Without commit() nothing has happened: the temporary file is removed.
  // Only a program that is killed leaves it behind.
  ~AtomicFile();

  // Appends.
  void write(std::span<const std::byte> bytes);

  // The last call. Forces the content to the disk, renames the file, and forces
  // that to the disk too. If it throws, the destination has the old content;
  // or the new one, if only the last step failed.
  void commit();

 private:
  void create_temporary();
  [[noreturn]] void refuse(int error) const;

  std::filesystem::path path_;
  FileDescriptor folder_;
  FileDescriptor file_;
  std::string name_;       // both within folder_
  std::string temporary_;  // empty when there is none
};

}  // namespace polyattn::base
