#include "base/utf8.h"

namespace polyattn::base {
namespace {

bool is_scalar(std::uint32_t code) {
  return code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
}

// Bytes of the character at the start of the text; 0 if it is none.
std::size_t character_size(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i]));
  };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc0 || lead >= 0xf8 || text.size() < size) return 0;
  std::uint32_t code = lead & (0x7fu >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  return code >= kLeast[size] && is_scalar(code) ? size : 0;
}

}  // namespace

std::size_t utf8_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t size = character_size(text.substr(at));
    if (size == 0) break;
    at += size;
  }
  return at;
}

std::optional<std::string> utf8_of(std::uint32_t code_point) {
  if (!is_scalar(code_point)) return std::nullopt;
  if (code_point < 0x80) return std::string(1, static_cast<char>(code_point));
  const int size = code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
  std::string text;
  for (int i = 0; i < size; ++i) {
    const std::uint32_t bits = code_point >> (6 * (size - 1 - i)) & 0x3f;
    text += static_cast<char>(bits | 0x80);
  }
  // The first byte has `size` ones, a zero, and the rest.
  const std::uint32_t rest = code_point >> (6 * (size - 1));
  text[0] = static_cast<char>((0xf00u >> size & 0xff) | rest);
  return text;
}

}  // namespace polyattn::base
