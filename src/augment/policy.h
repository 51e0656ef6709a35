// Which operations an image goes through: RandAugment, as torchvision and as
// timm have it, and TrivialAugmentWide; and colour jitter.
#pragma once

#include <vector>

#include "augment/operation.h"
#include "base/random.h"

namespace polyattn::augment {

enum class PolicyKind {
  kNone,
  // torchvision's RandAugment: each of 14 operations as likely as any other,
  // the magnitude one of 31.
  kRandAugment,
  // timm's rand-...-inc1: 15 operations, each left out in half of the cases,
  // the magnitude of 10 with a deviation of its own.
  kRandIncreasing,
  // torchvision's TrivialAugmentWide: one operation, any of 31 magnitudes.
  kTrivialWide,
};

struct PolicyOptions {
  PolicyKind kind = PolicyKind::kNone;
  int operations = 2;
  double magnitude = 9;
  double deviation = 0;  // of the magnitude, for kRandIncreasing
  Filling filling = {};
};

// An operation that was drawn.
struct Choice {
  Operation operation = Operation::kIdentity;
  double magnitude = 0;
};

// For an image of this size.
std::vector<Choice> draw_policy(const PolicyOptions& options,
                                std::int64_t width, std::int64_t height,
                                base::Random& random);

void augment(const PolicyOptions& options, Image& image, base::Random& random);

// Factors of brightness, contrast and saturation from 1 - strength to
// 1 + strength, and a turn of the hue of at most `hue`, in an order that is
// drawn too.
struct JitterOptions {
  double strength = 0;
  double hue = 0;  // at most 1/2
};

void jitter(const JitterOptions& options, Image& image, base::Random& random);

}  // namespace polyattn::augment
