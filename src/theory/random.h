// Random numbers that are a function of what they are for: the same (seed,
// stream, tokens, sample) gives the same numbers whatever was drawn before, so
// results do not depend on who draws first.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "base/random.h"

namespace polyattn::theory {

// What the numbers are for.
enum class Stream : std::uint64_t {
  kQueriesKeys = 1,
  kProjections = 2,
  kScores = 3,
  kCausal = 4,
  kCorrelated = 5,
  kHeavyTails = 6,
  kCalibrate = 7,
};

struct RandomKey {
  std::uint64_t seed = 1;
  Stream stream = Stream::kQueriesKeys;
  std::int64_t tokens = 0;  // N
  std::int64_t sample = 0;
};

// Absorbs one part of a key after the other.
constexpr std::uint64_t seed_of(const RandomKey& key) {
  std::uint64_t state = 0;
  for (const std::uint64_t part :
       {key.seed, static_cast<std::uint64_t>(key.stream),
        static_cast<std::uint64_t>(key.tokens),
        static_cast<std::uint64_t>(key.sample)}) {
    state = base::mix_bits(base::mix_bits(state + base::kRandomStep) + part);
  }
  return state;
}

class Random : public base::Random {
 public:
  explicit Random(const RandomKey& key) : base::Random(seed_of(key)) {}
};

}  // namespace polyattn::theory
