// Text as tokens: each byte moved up by one, for 0 is padding. There is no byte
// 255 in UTF-8.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace polyattn::data {

inline constexpr std::int64_t kByteVocabulary = 257;

inline bool is_byte_text(std::string_view text) {
  return text.find('\xff') == std::string_view::npos;
}

inline void append_bytes(std::string_view text,
                         std::vector<std::uint8_t>& tokens) {
  const std::size_t before = tokens.size();
  tokens.resize(before + text.size());
  std::transform(
      text.begin(), text.end(),
      tokens.begin() + static_cast<std::ptrdiff_t>(before), [](char c) {
        return static_cast<std::uint8_t>(static_cast<std::uint8_t>(c) + 1);
      });
}

}  // namespace polyattn::data
