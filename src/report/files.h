// Files of runs, which anybody may have written: regular files alone, with a
// limit, and for the dashboard only what lies beneath one folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/file_descriptor.h"

namespace polyattn::report {

// What changes when a file does.
struct FileState {
  std::int64_t size = -1;     // -1: there is none
  std::int64_t modified = 0;  // nanoseconds since 1970
  std::uint64_t number = 0;   // of the file, on its disk

  bool exists() const { return size >= 0; }
  bool operator==(const FileState&) const = default;
};

FileState file_state(const std::filesystem::path& path);

// "2026-11-16T04:30:00Z"; empty for a file that is not there.
std::string modified_text(const FileState& state);

// Whether `path` is `folder` or lies in it. Both without links and dots.
bool is_beneath(const std::filesystem::path& path,
                const std::filesystem::path& folder);

// Both throw std::runtime_error: "cannot read path: why". With a `root`, which
// is a canonical path, also if the file that was opened lies elsewhere: asked
// of the open file, so that no link can be changed in between.
base::FileDescriptor open_file(const std::filesystem::path& path,
                               const std::filesystem::path& root);
std::string read_file(const std::filesystem::path& path, std::size_t max_bytes,
                      const std::filesystem::path& root);

}  // namespace polyattn::report
