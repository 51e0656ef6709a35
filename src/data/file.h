// Whole files, read with a limit and written at once. Every function throws
// DataError, which names the file and the reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"

namespace polyattn::data {

// What no file of a data set exceeds, unless its reader knows better.
inline constexpr std::uint64_t kMaxFileBytes = std::uint64_t{4} << 30;

// Refuses what is no regular file and what is longer than max_bytes. A file
// that grows or shrinks meanwhile is an error too.
std::vector<std::byte> read_bytes(const std::filesystem::path& path,
                                  std::uint64_t max_bytes = kMaxFileBytes);
std::string read_text(const std::filesystem::path& path,
                      std::uint64_t max_bytes = kMaxFileBytes);

// Hands the file over piece by piece: for files too long to be in memory.
void read_pieces(const std::filesystem::path& path,
                 const std::function<void(std::span<const std::byte>)>& take);

// The names within a folder, without "." and "..", sorted by bytes.
std::vector<std::string> names_in(const std::filesystem::path& folder);

// Creates the folder, and those above it, unless it is there.
void create_folder(const std::filesystem::path& folder);

// A file that is written piece by piece: half of it may be left behind.
class FileWriter {
 public:
  enum class Mode { kNew, kAppend };
  FileWriter(std::filesystem::path path, Mode mode);

  void write(std::span<const std::byte> bytes);

  // The last call, without which a failure may go unnoticed.
  void close();

 private:
  [[noreturn]] void refuse() const;

  std::filesystem::path path_;
  base::FileDescriptor file_;
};

// The file appears whole or not at all (io/atomic_file.h).
void write_whole(const std::filesystem::path& path,
                 std::span<const std::byte> bytes);
void write_whole(const std::filesystem::path& path, std::string_view text);

}  // namespace polyattn::data
