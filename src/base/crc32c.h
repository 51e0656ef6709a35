// CRC-32C (Castagnoli), the checksum of TensorBoard's records.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace polyattn::base {

constexpr std::uint32_t crc32c(std::string_view bytes) {
  constexpr std::array<std::uint32_t, 256> kTable = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) {
        value = value >> 1 ^ (value & 1 ? 0x82f63b78u : 0);
      }
      table[i] = value;
    }
    return table;
  }();
  std::uint32_t crc = ~0u;
  for (const char c : bytes) {
    crc = kTable[(crc ^ static_cast<unsigned char>(c)) & 0xff] ^ crc >> 8;
  }
  return ~crc;
}

}  // namespace polyattn::base
