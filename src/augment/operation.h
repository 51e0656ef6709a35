// The operations that policies choose from, with one number each.
#pragma once

#include <array>

#include "augment/image.h"

namespace polyattn::augment {

enum class Operation {
  kIdentity,
  kShearX,      // pixels a row
  kShearY,      // pixels a column
  kTranslateX,  // pixels
  kTranslateY,  // pixels
  kRotate,      // degrees, counter-clockwise
  kBrightness,  // factors, as in tone.h
  kColor,
  kContrast,
  kSharpness,
  kPosterize,     // bits
  kSolarize,      // threshold
  kSolarizeAdd,   // amount
  kAutoContrast,  // these have none
  kEqualize,
  kInvert,
};

// How geometric operations fill in.
struct Filling {
  Interpolation interpolation = Interpolation::kBilinear;
  std::array<std::uint8_t, 3> colour = {};
};

void apply(Operation operation, double magnitude, const Filling& filling,
           Image& image);

}  // namespace polyattn::augment
