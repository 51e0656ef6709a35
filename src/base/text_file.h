// Small files of text, read with a limit and written whole.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"

namespace polyattn::base {

// These throw std::runtime_error: "cannot read path: why", also if it is no
// regular file (a pipe is not waited for) or has more bytes than that.
FileDescriptor open_regular_file(const std::filesystem::path& path);
std::string read_open_file(const FileDescriptor& file,
                           const std::filesystem::path& path,
                           std::size_t max_bytes);
std::string read_text_file(const std::filesystem::path& path,
                           std::size_t max_bytes);

// A file appears whole or not at all. A symbolic link stays, and the file that
// it leads to is written, also one that is not there yet. A pipe, a device or
// an open file of this process (/dev/stdout, /dev/fd/3) is written to as it is.
// Throws std::system_error: "cannot write path: why".
void write_text_file(const std::filesystem::path& path, std::string_view text);

// Throws std::runtime_error if write_text_file(path) is bound to fail: better
// known before minutes of measuring than after.
void check_writable(const std::filesystem::path& path);

}  // namespace polyattn::base
