#include "augment/resize.h"

#include <gtest/gtest.h>

namespace polyattn::augment::resize_test {
namespace {

using Pixels = std::vector<std::uint8_t>;

Image grey(std::int64_t width, std::int64_t height, const Pixels& pixels) {
  return {width, height, 1, pixels};
}

Box whole(const Image& image) {
  return {0, 0, static_cast<double>(image.width),
          static_cast<double>(image.height)};
}

TEST(Resize, OfTheRightSizeStaysAsItIs) {
  const Image image = grey(3, 3, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  for (const auto kind : {Interpolation::kBilinear, Interpolation::kBicubic}) {
    EXPECT_EQ(resize(image, resize_to(whole(image), 3, kind)).pixels,
              image.pixels);
  }
}

// The centres of the new pixels lie a quarter beside the old ones.
TEST(Resize, GrowsByInterpolation) {
  const Image image = grey(2, 2, {0, 100, 0, 100});
  EXPECT_EQ(
      resize(image, resize_to(whole(image), 4, Interpolation::kBilinear))
          .pixels,
      (Pixels{0, 25, 75, 100, 0, 25, 75, 100, 0, 25, 75, 100, 0, 25, 75, 100}));
}

// 3 pixels with weights 1/4, 3/4, 3/4, 1/4 around the centre of 2.
TEST(Resize, ShrinksByAveraging) {
  const Image image = grey(4, 4, Pixels(16, 0));
  Image bright = image;
  for (std::int64_t y = 0; y < 4; ++y) bright.row(y)[1] = 70;
  const Image small =
      resize(bright, resize_to(whole(bright), 2, Interpolation::kBilinear));
  // The border cuts the triangle: 3/4 of 1/4 + 3/4 + 3/4 that are left is 3/7.
  EXPECT_EQ(small.pixels, (Pixels{30, 10, 30, 10}));
}

TEST(Resize, NeverLeavesTheLevels) {
  Image image = grey(8, 8, Pixels(64, 0));
  for (std::int64_t y = 0; y < 8; ++y) {
    for (std::int64_t x = 4; x < 8; ++x) image.row(y)[x] = 255;
  }
  // A cubic overshoots on both sides of an edge, which is cut off.
  const Image large =
      resize(image, resize_to(whole(image), 29, Interpolation::kBicubic));
  for (std::int64_t y = 0; y < 29; ++y) {
    for (std::int64_t x = 1; x < 29; ++x) {
      EXPECT_GE(large.row(y)[x], large.row(y)[x - 1]) << x;
    }
  }
}

// What lies outside of the box is not looked at.
TEST(Resize, OfAPartIsThatOfTheCroppedImage) {
  Image image = blank_image(11, 9, 3);
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    image.pixels[i] = static_cast<std::uint8_t>(i * 37);
  }
  Image part = blank_image(5, 4, 3);
  for (std::int64_t y = 0; y < 4; ++y) {
    std::copy_n(image.row(y + 3) + 2 * 3, 15, part.row(y));
  }
  for (const auto kind : {Interpolation::kBilinear, Interpolation::kBicubic}) {
    for (const std::int64_t size : {1, 3, 7, 20}) {
      EXPECT_EQ(resize(image, resize_to({2, 3, 5, 4}, size, kind)).pixels,
                resize(part, resize_to(whole(part), size, kind)).pixels);
    }
  }
}

// A box between pixels moves what is seen.
TEST(Resize, TakesBoxesBetweenPixels) {
  const Image ramp = grey(5, 1, {0, 10, 20, 30, 40});
  const Image moved = resize(ramp, {.from = {0.5, 0, 4, 1},
                                    .scaled_width = 4,
                                    .scaled_height = 1,
                                    .window = {0, 0, 4, 1}});
  EXPECT_EQ(moved.pixels, (Pixels{5, 15, 25, 35}));
}

TEST(CentreCrop, TakesTheMiddleOfTheLongerSide) {
  const Resize how = centre_crop(500, 375, {.shorter = 256, .size = 224});
  EXPECT_EQ(how.scaled_width, 341);
  EXPECT_EQ(how.scaled_height, 256);
  EXPECT_EQ(how.window.left, 58);  // 58.5, to the even number
  EXPECT_EQ(how.window.top, 16);
  EXPECT_EQ(how.window.width, 224);
}

}  // namespace
}  // namespace polyattn::augment::resize_test
