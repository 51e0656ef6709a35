#include "augment/operation.h"

#include <gtest/gtest.h>

#include "augment/tone.h"
#include "augment/warp.h"

namespace polyattn::augment::operation_test {
namespace {

using Pixels = std::vector<std::uint8_t>;

Pixels after(Operation operation, double magnitude, const Image& image) {
  Image changed = image;
  apply(operation, magnitude, {.colour = {9, 9, 9}}, changed);
  EXPECT_EQ(changed.width, image.width);
  EXPECT_EQ(changed.height, image.height);
  return changed.pixels;
}

const Image kGrey{3, 2, 1, {0, 50, 100, 150, 200, 250}};

TEST(Operation, MovesTurnsAndFills) {
  EXPECT_EQ(after(Operation::kTranslateX, 1, kGrey),
            (Pixels{9, 0, 50, 9, 150, 200}));
  EXPECT_EQ(after(Operation::kTranslateY, -1, kGrey),
            (Pixels{150, 200, 250, 9, 9, 9}));
  const Image square{2, 2, 1, {1, 2, 3, 4}};
  EXPECT_EQ(after(Operation::kRotate, 90, square), (Pixels{2, 4, 1, 3}));
  EXPECT_EQ(after(Operation::kRotate, 180, square), (Pixels{4, 3, 2, 1}));
}

TEST(Operation, ChangesLevels) {
  EXPECT_EQ(after(Operation::kIdentity, 0, kGrey), kGrey.pixels);
  EXPECT_EQ(after(Operation::kInvert, 0, kGrey),
            (Pixels{255, 205, 155, 105, 55, 5}));
  EXPECT_EQ(after(Operation::kPosterize, 2, kGrey),
            (Pixels{0, 0, 64, 128, 192, 192}));
  EXPECT_EQ(after(Operation::kPosterize, 0, kGrey), Pixels(6, 0));
  EXPECT_EQ(after(Operation::kSolarize, 128, kGrey),
            (Pixels{0, 50, 100, 105, 55, 5}));
  EXPECT_EQ(after(Operation::kSolarize, 256, kGrey), kGrey.pixels);
  EXPECT_EQ(after(Operation::kSolarizeAdd, 200, kGrey),
            (Pixels{200, 250, 255, 150, 200, 250}));
  EXPECT_EQ(after(Operation::kBrightness, 0.5, kGrey),
            (Pixels{0, 25, 50, 75, 100, 125}));
  EXPECT_EQ(after(Operation::kBrightness, 2, kGrey),
            (Pixels{0, 100, 200, 255, 255, 255}));
  EXPECT_EQ(after(Operation::kContrast, 0, kGrey), Pixels(6, 125));
  EXPECT_EQ(after(Operation::kAutoContrast, 0, {2, 1, 1, {100, 110}}),
            (Pixels{0, 255}));
  EXPECT_EQ(after(Operation::kColor, 0, {1, 1, 3, {255, 0, 0}}),
            (Pixels{76, 76, 76}));
  // Borders have no neighbours on one side, and stay.
  Image dot = blank_image(3, 3, 1);
  dot.row(1)[1] = 130;
  EXPECT_EQ(after(Operation::kSharpness, 0, dot)[4], 50);
  EXPECT_EQ(after(Operation::kSharpness, 0, kGrey), kGrey.pixels);
}

TEST(Operation, OfTheSmallestImagesIsDefined) {
  for (int i = 0; i <= static_cast<int>(Operation::kInvert); ++i) {
    for (const std::int64_t channels : {1, 3}) {
      Image image = blank_image(1, 1, channels);
      apply(static_cast<Operation>(i), 1, {}, image);
      EXPECT_EQ(image.pixels.size(), static_cast<std::size_t>(channels));
    }
  }
}

TEST(AdjustHue, TurnsColoursAndLeavesGrey) {
  Image image{2, 1, 3, {255, 0, 0, 77, 77, 77}};
  adjust_hue(image, 0.5);
  EXPECT_EQ(Pixels(image.pixels.begin() + 3, image.pixels.end()),
            (Pixels{77, 77, 77}));
  // Cyan, but that a hue is one of 256: 127 of 255 is not a half.
  EXPECT_EQ(image.pixels[0], 0);
  EXPECT_EQ(image.pixels[1], 255);
  EXPECT_NEAR(image.pixels[2], 252, 1);
}

}  // namespace
}  // namespace polyattn::augment::operation_test
