// Any bytes either load as a saved state of decoding or throw
// std::invalid_argument, never anything else; what loads is saved and loaded
// again to the same bytes, and goes on.
//
// The first byte of the input says what the others are: 0 modulo 2, all of a
// saved state but its checksum, which bytes at random would never meet; else a
// whole one.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "polyattn/decode.h"

namespace {

using polyattn::DecodeShape;
using polyattn::DecodeState;
using polyattn::view;
using Bytes = std::vector<std::byte>;

void require(bool condition, const char* message) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", message);
  std::abort();
}

void add_checksum(Bytes& bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::byte b : bytes)
    hash = (hash ^ static_cast<std::uint64_t>(b)) * 0x100000001b3;
  for (int i = 0; i < 8; ++i)
    bytes.push_back(static_cast<std::byte>(hash >> (8 * i) & 0xff));
}

// Shapes for which a step takes no time.
bool small(const DecodeShape& s) {
  return s.batch <= 4 && s.heads <= 4 && s.d <= 8 && s.e <= 8;
}

void go_on(DecodeState& state) {
  const DecodeShape& s = state.shape();
  constexpr std::int64_t kTokens = 3;
  const std::vector<float> ones(
      static_cast<std::size_t>(s.batch * s.heads * kTokens * (s.d + s.e)), 1);
  std::vector<float> o(ones.size());
  polyattn::SerialParallel serial;
  std::vector<std::int64_t> before;
  for (std::int64_t b = 0; b < s.batch; ++b) before.push_back(state.length(b));
  try {
    state.step({.q = view(ones.data(), {s.batch, s.heads, kTokens, s.d}),
                .k = view(ones.data(), {s.batch, s.kv_heads, kTokens, s.d}),
                .v = view(ones.data(), {s.batch, s.kv_heads, kTokens, s.e})},
               view(o.data(), {s.batch, s.heads, kTokens, s.e}), serial);
  } catch (const std::overflow_error&) {
    return;  // the sums may be anything
  }
  for (std::int64_t b = 0; b < s.batch; ++b)
    require(state.length(b) == before[static_cast<std::size_t>(b)] + kTokens,
            "tokens are lost");
}

void check(const Bytes& bytes) {
  try {
    DecodeState state = DecodeState::load(bytes);
    const Bytes saved = state.save();
    require(DecodeState::load(saved).save() == saved, "saving is not stable");
    require(state.bytes() <= bytes.size(), "more than was in the bytes");
    if (small(state.shape())) go_on(state);
  } catch (const std::invalid_argument& error) {
    require(!std::string_view(error.what()).empty(), "no message");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  if (size == 0) return 0;
  const auto input = std::as_bytes(std::span(data, size)).subspan(1);
  // A copy, so that the sanitizer sees what is read beyond its end.
  Bytes bytes(input.begin(), input.end());
  if (data[0] % 2 == 0) add_checksum(bytes);
  check(bytes);
  return 0;
}
