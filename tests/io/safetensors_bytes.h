// Safetensors files made by hand, for tests.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "polyattn/io/safetensors.h"

namespace polyattn::io::test {

// Eight bytes, little-endian.
inline std::string length_bytes(std::uint64_t length) {
  std::string text;
  for (int i = 0; i < 8; ++i) text += static_cast<char>(length >> (8 * i));
  return text;
}

inline std::string braces(std::string_view inside) {
  return std::string("{").append(inside).append("}");
}

inline std::string file_of(std::string_view header, std::string_view data) {
  return length_bytes(header.size()).append(header).append(data);
}

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

inline std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The message that parsing this file ends with; empty if it is accepted.
inline std::string refusal(std::string_view file) {
  try {
    SafetensorsFile::parse(as_bytes(file), "x");
  } catch (const SafetensorsError& error) {
    return error.what();
  }
  return "";
}

// A folder that is gone when the test ends.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name =
        (std::filesystem::temp_directory_path() / "polyattn_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw std::filesystem::filesystem_error(
          "mkdtemp", name, std::error_code(errno, std::generic_category()));
    }
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::filesystem::path operator/(std::string_view name) const {
    return path_ / name;
  }

  std::ptrdiff_t file_count() const {
    return std::distance(std::filesystem::directory_iterator(path_), {});
  }

 private:
  std::filesystem::path path_;
};

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_text(const std::filesystem::path& path,
                       std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace polyattn::io::test
