#include "base/base64.h"

#include <algorithm>
#include <string_view>

namespace polyattn::base {

std::string base64(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  while (!bytes.empty()) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size());
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      group = group << 8 | (i < count ? bytes[i] : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      text += i <= count ? kLetters[group >> (18 - 6 * i) & 63U] : '=';
    }
    bytes = bytes.subspan(count);
  }
  return text;
}

}  // namespace polyattn::base
