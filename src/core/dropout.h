// Which weights dropout removes: a function of the seed and the place alone,
// so that backward finds them again and nothing has to be kept.
//
// The bits are those of Philox4x32 (Salmon, Moraes, Dror and Shaw, "Parallel
// random numbers: as easy as 1, 2, 3", 2011), which has a counter in the place
// of a state: {key / 4, query, head, example} gives 32 bits to each of four
// neighbouring keys. docs/kernels.md says why this one.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "polyattn/attention.h"

namespace polyattn {

// The fewest rounds that pass BigCrush; ten are usual.
inline constexpr int kPhiloxRounds = 7;
inline constexpr std::array<std::uint32_t, 2> kPhiloxFactor = {0xd2511f53,
                                                               0xcd9e8d57};
inline constexpr std::array<std::uint32_t, 2> kPhiloxStep = {0x9e3779b9,
                                                             0xbb67ae85};

using PhiloxBlock = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

constexpr PhiloxBlock philox(PhiloxBlock c, PhiloxKey key,
                             int rounds = kPhiloxRounds) {
  for (int i = 0; i < rounds; ++i) {
    const std::uint64_t a = std::uint64_t{kPhiloxFactor[0]} * c[0];
    const std::uint64_t b = std::uint64_t{kPhiloxFactor[1]} * c[2];
    c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ key[0],
         static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ key[1],
         static_cast<std::uint32_t>(a)};
    for (std::size_t k = 0; k < 2; ++k) key[k] += kPhiloxStep[k];
  }
  return c;
}

constexpr PhiloxKey philox_key(std::uint64_t seed) {
  return {static_cast<std::uint32_t>(seed),
          static_cast<std::uint32_t>(seed >> 32)};
}

// A weight whose bits are below this is removed: p to within 2^-32.
inline std::uint32_t drop_below(double p) {
  return static_cast<std::uint32_t>(std::ldexp(p, 32));
}

// What the weights that are kept are multiplied by.
inline double kept_factor(const Dropout& dropout) {
  return 1 / (1 - dropout.p);
}

// Of head h of the call, which is number first_head + h. Numbers count modulo
// 2^32.
inline bool is_dropped(const Dropout& dropout, std::int64_t b, std::int64_t h,
                       std::int64_t i, std::int64_t j) {
  const PhiloxBlock block =
      philox({static_cast<std::uint32_t>(j / 4), static_cast<std::uint32_t>(i),
              static_cast<std::uint32_t>(dropout.first_head + h),
              static_cast<std::uint32_t>(b)},
             philox_key(dropout.seed));
  return block[static_cast<std::size_t>(j % 4)] < drop_below(dropout.p);
}

}  // namespace polyattn
