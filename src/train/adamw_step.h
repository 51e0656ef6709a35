// The arithmetic of AdamW on stretches of memory: without torch, so that it is
// compiled with full optimisation and in a second.
#pragma once

#include <span>

namespace polyattn::train {

// In double.
double sum_of_squares(std::span<const float> values);

struct AdamWFactors {
  float clip = 1;  // of the gradient
  float b1 = 0;    // of the moments
  float b2 = 0;
  float shrink = 1;  // of the weight: 1 - lr * weight decay
  float rate = 0;    // lr / (1 - b1^steps)
  float root = 1;    // 1 / sqrt(1 - b2^steps)
  float eps = 0;
};

// Arrays of the same length.
struct AdamWArrays {
  std::span<const float> gradient;
  std::span<float> weight, m, v;
};

void adamw_step(const AdamWFactors& factors, const AdamWArrays& arrays);

// average = keep average + (1 - keep) weight
void move_average(float keep, std::span<const float> weight,
                  std::span<float> average);

}  // namespace polyattn::train
