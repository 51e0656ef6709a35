// Random numbers that are a function of what they are for: the same (seed,
// stream, index) gives the same numbers on every machine, whatever was drawn
// before. So a run that resumes at any step sees what an unbroken one sees.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace polyattn::train {

// What the numbers are for.
enum class Stream : std::uint64_t {
  kOrder = 1,     // of the examples in an epoch
  kAugment = 2,   // of a batch
  kDropout = 3,   // of a step
  kInitial = 4,   // weights
  kSampling = 5,  // generated text
  kImage = 6      // augmentation of an image, by its place among all batches
};

constexpr std::uint64_t seed_of(std::uint64_t seed, Stream stream,
                                std::uint64_t index) {
  base::Random outer(seed);
  base::Random inner(outer.next() + static_cast<std::uint64_t>(stream));
  return base::Random(inner.next() + index).next();
}

class Random : public base::Random {
 public:
  Random(std::uint64_t seed, Stream stream, std::uint64_t index)
      : base::Random(seed_of(seed, stream, index)) {}

  // In [0, bound), for 0 < bound < 2^32: the bias is below 2^-21. Other numbers
  // than those of the base, on which runs of the past rest.
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(uniform() * static_cast<double>(bound));
  }
};

}  // namespace polyattn::train
