// Output that is complete or an error.
#pragma once

#include <string>
#include <string_view>

namespace polyattn::cli {

// To standard output. Throws std::runtime_error if it cannot be written.
void print_text(std::string_view text);

// Throws std::runtime_error if write_file_atomically(path) is bound to fail:
// better known before minutes of measuring than after.
void check_writable(const std::string& path);

// Writes a file beside it and renames it: readers see the old or the new
// content, never half of it. Throws std::runtime_error.
void write_file_atomically(const std::string& path, std::string_view text);

}  // namespace polyattn::cli
