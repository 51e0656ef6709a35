// A text line by line.
#pragma once

#include <cstddef>
#include <string_view>

namespace polyattn::data {

// The line that a text begins with, with its newline if it has one.
inline std::string_view first_line(std::string_view text) {
  const std::size_t newline = text.find('\n');
  return newline == std::string_view::npos ? text : text.substr(0, newline + 1);
}

}  // namespace polyattn::data
