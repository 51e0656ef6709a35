// Text for error messages.
#pragma once

#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>

namespace polyattn::base {

template <typename... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

// The text, or its start and three dots if it is long.
std::string shortened(std::string_view text);

// Text of unknown origin, made fit for a terminal: in quotes, shortened, and in
// ASCII, with escapes as in JSON for everything else.
std::string in_quotes(std::string_view text);

// 2500000 as "2 500 000".
std::string grouped(std::uint64_t number);

}  // namespace polyattn::base
