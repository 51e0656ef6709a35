#include "augment/crop.h"

#include <gtest/gtest.h>

#include <cmath>

namespace polyattn::augment::crop_test {
namespace {

bool lies_within(const Window& w, std::int64_t width, std::int64_t height) {
  return w.left >= 0 && w.top >= 0 && w.width > 0 && w.height > 0 &&
         w.left + w.width <= width && w.top + w.height <= height;
}

TEST(DrawCrop, HasTheAreaAndTheSidesThatAreAllowed) {
  base::Random random(1);
  double area = 0;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    const Window window = draw_crop(1000, 1000, {}, random);
    ASSERT_TRUE(lies_within(window, 1000, 1000));
    const auto w = static_cast<double>(window.width);
    const auto h = static_cast<double>(window.height);
    ASSERT_GE(w * h, 0.08 * 1e6 - w - h);
    ASSERT_GE(w / h, 3.0 / 4 - 2 / h);
    ASSERT_LE(w / h, 4.0 / 3 + 2 / h);
    area += w * h / 1e6;
  }
  // Even from 0.08 to 1, but that what is wider or higher than the image is
  // drawn again: of an area s the share of ratios that fit, whose logarithms
  // lie within log s of 0, is min(1, -log s / log(4/3)). Over all s, by
  // quadrature: integral of s p over that of p = 0.4778.
  EXPECT_NEAR(area / kDraws, 0.4778, 0.006);
}

TEST(DrawCrop, OfALongImageIsItsMiddle) {
  base::Random random(1);
  const PartOptions options{.least = 1};
  const Window high = draw_crop(30, 1000, options, random);
  EXPECT_EQ(high.width, 30);
  EXPECT_EQ(high.height, 40);
  EXPECT_EQ(high.top, 480);
  const Window wide = draw_crop(1000, 30, options, random);
  EXPECT_EQ(wide.width, 40);
  EXPECT_EQ(wide.left, 480);
  const Window one = draw_crop(1, 1, {.least = 0.01, .most = 0.01}, random);
  EXPECT_TRUE(lies_within(one, 1, 1));
}

TEST(DrawErased, IsAPartOfAFiftiethToAThird) {
  base::Random random(1);
  for (int i = 0; i < 10000; ++i) {
    const auto window = draw_erased(224, 224, random);
    ASSERT_TRUE(window);
    ASSERT_TRUE(lies_within(*window, 224, 224));
    const double share =
        static_cast<double>(window->width * window->height) / (224 * 224);
    ASSERT_GT(share, 0.018);
    ASSERT_LT(share, 0.34);
  }
  // A part is smaller than the image in both directions: of a single pixel only
  // one that rounds to nothing would be.
  for (int i = 0; i < 100; ++i) {
    const auto window = draw_erased(1, 1, random);
    EXPECT_TRUE(!window || window->width * window->height == 0);
  }
}

TEST(DrawCutmix, HasItsShareWhereNoBorderCutsIt) {
  base::Random random(1);
  int whole = 0;
  for (int i = 0; i < 10000; ++i) {
    const Window window = draw_cutmix(100, 60, 0.75, random);
    ASSERT_TRUE(window.left >= 0 && window.left + window.width <= 100);
    ASSERT_TRUE(window.top >= 0 && window.top + window.height <= 60);
    ASSERT_LE(window.width, 50);
    ASSERT_LE(window.height, 30);
    whole += window.width == 50 && window.height == 30 ? 1 : 0;
  }
  // Half of the places in each direction: 51 of 100 and 31 of 60.
  EXPECT_NEAR(whole, 10000 * 0.51 * 31 / 60, 200);
  EXPECT_EQ(draw_cutmix(10, 10, 1, random).width, 0);
}

}  // namespace
}  // namespace polyattn::augment::crop_test
