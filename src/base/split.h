// Text cut into parts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace polyattn::base {

// Without the blanks around it.
inline std::string trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return "";
  return std::string(
      text.substr(first, text.find_last_not_of(kBlanks) + 1 - first));
}

// At the commas, without the blanks around the parts. An empty text is one
// empty part.
inline std::vector<std::string> split_at_commas(std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t comma = text.find(','); comma != std::string_view::npos;
       comma = text.find(',')) {
    parts.push_back(trimmed(text.substr(0, comma)));
    text.remove_prefix(comma + 1);
  }
  parts.push_back(trimmed(text));
  return parts;
}

}  // namespace polyattn::base
