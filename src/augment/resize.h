// Images made larger or smaller, to the bytes that the Python Imaging Library
// gives: weights in 22 bits, rows first, rounded to bytes between the passes.
#pragma once

#include "augment/image.h"

namespace polyattn::augment {

// A rectangle within an image; its corners need not lie on pixels.
struct Box {
  double left = 0, top = 0, width = 0, height = 0;
};

// Whole pixels.
struct Window {
  std::int64_t left = 0, top = 0, width = 0, height = 0;
};

// The box becomes scaled_width x scaled_height pixels, of which the window is
// wanted. Nothing outside of the box is looked at, but for what shares a pixel
// with it: a box of whole pixels is as good as an image that was cropped.
struct Resize {
  Box from;
  std::int64_t scaled_width = 0;
  std::int64_t scaled_height = 0;
  Window window;
  Interpolation interpolation = Interpolation::kBilinear;
};

// A triangle, or a cubic with a = -1/2, around the centre of each pixel of the
// result; when it makes things smaller, over as many pixels as fall on one.
Image resize(const Image& image, const Resize& how);

// The box as `size` x `size` pixels.
Resize resize_to(const Box& from, std::int64_t size,
                 Interpolation interpolation);

// For an image of this size: its shorter side gets `shorter` pixels, and the
// middle, `size` x `size`, is cut out; shorter >= size.
struct CentreCrop {
  std::int64_t shorter = 0;
  std::int64_t size = 0;
  Interpolation interpolation = Interpolation::kBilinear;
};
Resize centre_crop(std::int64_t width, std::int64_t height,
                   const CentreCrop& crop);

}  // namespace polyattn::augment
