// Draws a token from logits.
#pragma once

#include <cstdint>
#include <span>

#include "train/random.h"

namespace polyattn::train {

struct SamplingOptions {
  double temperature = 1;  // 0: always the likeliest
  std::int64_t top_k = 0;  // only so many of the likeliest; 0: all
  double top_p = 1;        // only the likeliest that have this share together
};

// At least one token always remains. Ties go to the lower token.
std::int64_t draw_token(std::span<const float> logits,
                        const SamplingOptions& options, Random& random);

}  // namespace polyattn::train
