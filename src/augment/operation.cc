#include "augment/operation.h"

#include "augment/tone.h"
#include "augment/warp.h"

namespace polyattn::augment {
namespace {

Affine affine_of(Operation operation, double magnitude, const Image& image) {
  switch (operation) {
    case Operation::kShearX:
      return {.xy = magnitude};
    case Operation::kShearY:
      return {.yx = magnitude};
    case Operation::kTranslateX:
      return {.x0 = -magnitude};
    case Operation::kTranslateY:
      return {.y0 = -magnitude};
    default:
      return rotation(image, magnitude);
  }
}

}  // namespace

void apply(Operation operation, double magnitude, const Filling& filling,
           Image& image) {
  switch (operation) {
    case Operation::kIdentity:
      return;
    case Operation::kShearX:
    case Operation::kShearY:
    case Operation::kTranslateX:
    case Operation::kTranslateY:
    case Operation::kRotate:
      image = warp(image, {.from = affine_of(operation, magnitude, image),
                           .interpolation = filling.interpolation,
                           .fill = filling.colour});
      return;
    case Operation::kBrightness:
      return adjust_brightness(image, magnitude);
    case Operation::kColor:
      return adjust_saturation(image, magnitude);
    case Operation::kContrast:
      return adjust_contrast(image, magnitude);
    case Operation::kSharpness:
      return adjust_sharpness(image, magnitude);
    case Operation::kPosterize:
      return posterize(image, static_cast<int>(magnitude));
    case Operation::kSolarize:
      return solarize(image, magnitude);
    case Operation::kSolarizeAdd:
      return solarize_add(image, static_cast<int>(magnitude));
    case Operation::kAutoContrast:
      return autocontrast(image);
    case Operation::kEqualize:
      return equalize(image);
    case Operation::kInvert:
      return invert(image);
  }
}

}  // namespace polyattn::augment
