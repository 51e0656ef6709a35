// Small files of text, read with a limit and written whole.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace polyattn::base {

// Throws std::runtime_error: "cannot read path: why", also if it is no regular
// file or has more bytes than that.
std::string read_text_file(const std::filesystem::path& path,
                           std::size_t max_bytes);

// Appears whole or not at all. Throws std::system_error.
void write_text_file(const std::filesystem::path& path, std::string_view text);

}  // namespace polyattn::base
