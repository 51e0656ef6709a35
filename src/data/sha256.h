// SHA-256 (FIPS 180-4), plain and portable: some hundred megabytes a second,
// which is faster than what feeds it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace polyattn::data {

class Sha256 {
 public:
  void update(std::span<const std::byte> bytes);

  // The digest in 64 small hexadecimal digits. The last call.
  std::string finish();

 private:
  void take_block(const std::byte* block);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                      0xa54ff53a, 0x510e527f, 0x9b05688c,
                                      0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> pending_{};
  std::size_t pending_size_ = 0;
  std::uint64_t length_ = 0;
};

std::string sha256_of(std::span<const std::byte> bytes);
std::string sha256_of(std::string_view text);

// Reads the file in pieces. Throws DataError.
std::string sha256_of_file(const std::filesystem::path& path);

}  // namespace polyattn::data
