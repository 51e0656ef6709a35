#include "data/sha256.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "data/file.h"

namespace polyattn::data {
namespace {

// The fractional parts of the cube roots of the first 64 primes.
constexpr std::array<std::uint32_t, 64> kRounds{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t big_endian(const std::byte* bytes) {
  return std::to_integer<std::uint32_t>(bytes[0]) << 24 |
         std::to_integer<std::uint32_t>(bytes[1]) << 16 |
         std::to_integer<std::uint32_t>(bytes[2]) << 8 |
         std::to_integer<std::uint32_t>(bytes[3]);
}

std::array<std::uint32_t, 64> message_schedule(const std::byte* block) {
  std::array<std::uint32_t, 64> w{};
  for (std::size_t i = 0; i < 16; ++i) w[i] = big_endian(block + 4 * i);
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t a = w[i - 15];
    const std::uint32_t b = w[i - 2];
    const std::uint32_t s0 = std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3);
    const std::uint32_t s1 = std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  return w;
}

}  // namespace

void Sha256::take_block(const std::byte* block) {
  const std::array<std::uint32_t, 64> w = message_schedule(block);
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t s1 =
        std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t choice = (e & f) ^ (~e & g);
    const std::uint32_t t1 = h + s1 + choice + kRounds[i] + w[i];
    const std::uint32_t s0 =
        std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + s0 + majority;
  }
  const std::array<std::uint32_t, 8> added{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state_[i] += added[i];
}

void Sha256::update(std::span<const std::byte> bytes) {
  length_ += bytes.size();
  if (pending_size_ > 0) {
    const std::size_t taken =
        std::min(bytes.size(), pending_.size() - pending_size_);
    std::copy_n(bytes.begin(), taken, pending_.begin() + pending_size_);
    pending_size_ += taken;
    bytes = bytes.subspan(taken);
    if (pending_size_ < pending_.size()) return;
    take_block(pending_.data());
    pending_size_ = 0;
  }
  while (bytes.size() >= pending_.size()) {
    take_block(bytes.data());
    bytes = bytes.subspan(pending_.size());
  }
  std::copy(bytes.begin(), bytes.end(), pending_.begin());
  pending_size_ = bytes.size();
}

// A one, zeros, and the length in bits fill the last block.
std::string Sha256::finish() {
  const std::uint64_t bits = length_ * 8;
  std::array<std::byte, 72> padding{std::byte{0x80}};
  std::size_t size = 64 - pending_size_;
  if (size < 9) size += 64;
  for (std::size_t i = 0; i < 8; ++i) {
    const auto byte = static_cast<std::byte>(bits >> (56 - 8 * i) & 0xff);
    padding[size - 8 + i] = byte;
  }
  update(std::span(padding).first(size));
  std::string digest;
  for (const std::uint32_t word : state_) digest += fmt::format("{:08x}", word);
  return digest;
}

std::string sha256_of(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

std::string sha256_of(std::string_view text) {
  return sha256_of(std::as_bytes(std::span(text)));
}

std::string sha256_of_file(const std::filesystem::path& path) {
  Sha256 hash;
  read_pieces(path,
              [&](std::span<const std::byte> bytes) { hash.update(bytes); });
  return hash.finish();
}

}  // namespace polyattn::data
