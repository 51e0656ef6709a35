// Random numbers that are a function of what they are for: the same (seed,
// stream, index) gives the same numbers on every machine, whatever was drawn
// before. So a run that resumes at any step sees what an unbroken one sees.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/random.h"

namespace polyattn::train {

// What the numbers are for.
enum class Stream : std::uint64_t {
  kOrder = 1,    // of the examples in an epoch
  kAugment = 2,  // of a batch
  kDropout = 3,  // of a step
  kInitial = 4,  // weights
  kSampling = 5  // generated text
};

constexpr std::uint64_t seed_of(std::uint64_t seed, Stream stream,
                                std::uint64_t index) {
  base::RandomBits outer(seed);
  base::RandomBits inner(outer.next() + static_cast<std::uint64_t>(stream));
  return base::RandomBits(inner.next() + index).next();
}

class Random {
 public:
  Random(std::uint64_t seed, Stream stream, std::uint64_t index)
      : bits_(seed_of(seed, stream, index)) {}

  std::uint64_t next() { return bits_.next(); }

  // In [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  // In [0, bound), for 0 < bound < 2^32: the bias is below 2^-21.
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(uniform() * static_cast<double>(bound));
  }

  // Beta(a, a) for a > 0, by Johnk's rule in logarithms, which cannot
  // underflow to 0/0 for small a.
  double symmetric_beta(double a) {
    for (;;) {
      const double x = std::log(1 - uniform()) / a;
      const double y = std::log(1 - uniform()) / a;
      const double top = std::fmax(x, y);
      const double sum = top + std::log(std::exp(x - top) + std::exp(y - top));
      if (sum <= 0) return std::exp(x - sum);
    }
  }

 private:
  base::RandomBits bits_;
};

}  // namespace polyattn::train
