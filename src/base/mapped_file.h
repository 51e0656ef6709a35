// A file mapped into memory: read-only, private.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace polyattn::base {

class MappedFile {
 public:
  // Throws std::runtime_error, which holds the reason alone, if there is no
  // such file or it is none that can be mapped. An empty file is a mapping of
  // no bytes.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace polyattn::base
