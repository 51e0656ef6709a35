// Random numbers that are a function of what they are for: the same (seed,
// stream, tokens, sample) gives the same numbers whatever was drawn before, so
// results do not depend on who draws first.
#pragma once

#include <cstdint>

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

// SplitMix64, and Box-Muller on top of it: the distributions of <random> give
// other numbers with another standard library.
class Random {
 public:
  explicit Random(const RandomKey& key);

  // In (0, 1].
  double uniform();
  double normal();
  // Student's t with 3 degrees of freedom, scaled to variance 1. Moments of
  // order 3 and more do not exist.
  double heavy_tailed();

 private:
  std::uint64_t next();

  std::uint64_t state_;
  double spare_ = 0;  // the second number of a pair
  bool has_spare_ = false;
};

}  // namespace polyattn::theory
