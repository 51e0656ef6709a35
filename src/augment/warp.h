// Images moved, sheared and rotated, to the bytes that the Python Imaging
// Library gives.
#pragma once

#include <array>

#include "augment/image.h"

namespace polyattn::augment {

// The pixel (x, y) of the result is what lies at
//   (xx (x + 1/2) + xy (y + 1/2) + x0, yx (x + 1/2) + yy (y + 1/2) + y0).
struct Affine {
  double xx = 1, xy = 0, x0 = 0;
  double yx = 0, yy = 1, y0 = 0;
};

// Counter-clockwise around the middle.
Affine rotation(const Image& image, double degrees);

struct Warp {
  Affine from;
  Interpolation interpolation = Interpolation::kBilinear;  // cubic: a = -1
  std::array<std::uint8_t, 3> fill = {};  // where there is no pixel
};

Image warp(const Image& image, const Warp& how);

}  // namespace polyattn::augment
