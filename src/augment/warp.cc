#include "augment/warp.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace polyattn::augment {
namespace {

struct Point {
  double x, y;
};

// Values between the pixels of one image. Past its border is its last pixel.
class Sampler {
 public:
  explicit Sampler(const Image& image) : image_(image) {}

  void linear(Point at, std::uint8_t* out) const {
    const Corner corner = split(at);
    const std::uint8_t* upper = row(corner.y);
    const std::uint8_t* lower = row(corner.y + 1);
    const std::int64_t left = column(corner.x);
    const std::int64_t right = column(corner.x + 1);
    for (std::int64_t c = 0; c < image_.channels; ++c) {
      const auto along = [&](const std::uint8_t* line) {
        const double first = line[left + c];
        return first + (line[right + c] - first) * corner.dx;
      };
      const double top = along(upper);
      // Bytes are what is left of a value, not its nearest.
      out[c] =
          static_cast<std::uint8_t>(top + (along(lower) - top) * corner.dy);
    }
  }

  void cubic(Point at, std::uint8_t* out) const {
    const Corner corner = split(at);
    std::array<const std::uint8_t*, 4> lines;
    std::array<std::int64_t, 4> columns;
    for (std::size_t i = 0; i < 4; ++i) {
      const auto place = static_cast<std::int64_t>(i) - 1;
      lines[i] = row(corner.y + place);
      columns[i] = column(corner.x + place);
    }
    for (std::int64_t c = 0; c < image_.channels; ++c) {
      std::array<double, 4> values;
      for (std::size_t i = 0; i < 4; ++i) {
        const std::uint8_t* line = lines[i] + c;
        values[i] = between({static_cast<double>(line[columns[0]]),
                             static_cast<double>(line[columns[1]]),
                             static_cast<double>(line[columns[2]]),
                             static_cast<double>(line[columns[3]])},
                            corner.dx);
      }
      out[c] = static_cast<std::uint8_t>(
          std::clamp(between(values, corner.dy), 0.0, 255.0));
    }
  }

 private:
  struct Corner {
    std::int64_t x, y;
    double dx, dy;
  };

  // Within the image, where rounding to zero is rounding down.
  static Corner split(Point at) {
    const double left = at.x - 0.5;
    const double above = at.y - 0.5;
    const auto x = static_cast<std::int64_t>(left + 1) - 1;
    const auto y = static_cast<std::int64_t>(above + 1) - 1;
    return {x, y, left - static_cast<double>(x),
            above - static_cast<double>(y)};
  }

  // The cubic through b and c, with slopes c - a and d - b.
  static double between(const std::array<double, 4>& v, double t) {
    const auto [a, b, c, d] = v;
    return b + t * (c - a + t * (2 * (a - b) + c - d + t * (b - a + d - c)));
  }

  const std::uint8_t* row(std::int64_t y) const {
    return image_.row(std::clamp<std::int64_t>(y, 0, image_.height - 1));
  }
  std::int64_t column(std::int64_t x) const {
    return std::clamp<std::int64_t>(x, 0, image_.width - 1) * image_.channels;
  }

  const Image& image_;
};

}  // namespace

Affine rotation(const Image& image, double degrees) {
  const double angle = -degrees * std::numbers::pi / 180;
  // What is left of a right angle would move borders.
  const auto exact = [](double x) { return std::round(x * 1e15) / 1e15; };
  Affine affine{.xx = exact(std::cos(angle)),
                .xy = exact(std::sin(angle)),
                .yx = exact(-std::sin(angle)),
                .yy = exact(std::cos(angle))};
  const double x = static_cast<double>(image.width) / 2;
  const double y = static_cast<double>(image.height) / 2;
  affine.x0 = x - affine.xx * x - affine.xy * y;
  affine.y0 = y - affine.yx * x - affine.yy * y;
  return affine;
}

Image warp(const Image& image, const Warp& how) {
  Image result = blank_image(image.width, image.height, image.channels);
  const Sampler sampler(image);
  const auto width = static_cast<double>(image.width);
  const auto height = static_cast<double>(image.height);
  const Affine& m = how.from;
  for (std::int64_t row = 0; row < image.height; ++row) {
    const double y = static_cast<double>(row) + 0.5;
    std::uint8_t* out = result.row(row);
    for (std::int64_t column = 0; column < image.width; ++column) {
      const double x = static_cast<double>(column) + 0.5;
      const Point at{m.xx * x + m.xy * y + m.x0, m.yx * x + m.yy * y + m.y0};
      if (at.x < 0 || at.x >= width || at.y < 0 || at.y >= height) {
        std::copy_n(how.fill.begin(), image.channels, out);
      } else if (how.interpolation == Interpolation::kBilinear) {
        sampler.linear(at, out);
      } else {
        sampler.cubic(at, out);
      }
      out += image.channels;
    }
  }
  return result;
}

}  // namespace polyattn::augment
