#include "data/decode.h"

#include <gtest/gtest.h>

#include "data/made_files.h"
#include "data/support.h"

namespace polyattn::data::decode_test {
namespace {

using test::bytes_of;
using test::error_of;
using test::has;
using test::jpeg_bytes;
using test::png_bytes;
using test::TemporaryFolder;

std::string wide_jpeg(int components = 1) {
  return jpeg_bytes(33, 18, components,
                    std::string(std::size_t{33} * 18 * components, 'P'));
}

TEST(ImageSize, IsThatOfTheHeader) {
  const ImageSize jpeg = image_size(bytes_of(wide_jpeg()), "a");
  EXPECT_EQ(jpeg.width, 33U);
  EXPECT_EQ(jpeg.height, 18U);
  const ImageSize png =
      image_size(bytes_of(png_bytes({.width = 5, .height = 7})), "a");
  EXPECT_EQ(png.width, 5U);
  EXPECT_EQ(png.height, 7U);
  EXPECT_TRUE(has(error_of([] { image_size(bytes_of("\xff\xd8\xff"), "a"); }),
                  "a: the JPEG is damaged"));
  EXPECT_TRUE(has(error_of([] { image_size(bytes_of("x"), "a"); }), "a: "));
}

TEST(DecodeImage, ShrinksJpegAlone) {
  for (const auto& [shrink, width, height] :
       {std::tuple{1U, 33U, 18U}, std::tuple{2U, 17U, 9U},
        std::tuple{4U, 9U, 5U}, std::tuple{8U, 5U, 3U}}) {
    for (const int components : {1, 3, 4}) {
      const RgbImage image =
          decode_image(bytes_of(wide_jpeg(components)), shrink, "a");
      EXPECT_EQ(image.width, width);
      EXPECT_EQ(image.height, height);
      EXPECT_EQ(image.pixels.size(), std::size_t{width} * height * 3);
    }
    EXPECT_EQ(
        decode_image(bytes_of(png_bytes({.width = 33})), shrink, "a").width,
        33U);
  }
}

// A camera that was held upright says so; the pixels stay as they lie.
TEST(DecodeImage, IgnoresTheWayUp) {
  std::string jpeg = wide_jpeg();
  const std::string exif(
      "\xff\xe1\x00\x22"
      "Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01"
      "\0\x06\0\0\0\0\0\0",
      36);
  jpeg.insert(2, exif);
  const RgbImage image = decode_image(bytes_of(jpeg), 1, "a");
  EXPECT_EQ(image.width, 33U);
  EXPECT_EQ(image.pixels, decode_image(bytes_of(wide_jpeg()), 1, "a").pixels);
}

TEST(ReadImageFile, LooksAtTheContent) {
  const TemporaryFolder folder;
  folder.write("a.JPEG", png_bytes({}));
  EXPECT_EQ(decode_image(read_image_file(folder / "a.JPEG"), 1, "a").width, 1U);
  folder.write("b.JPEG", "<html>");
  EXPECT_TRUE(has(error_of([&] { read_image_file(folder / "b.JPEG"); }),
                  "b.JPEG: this is neither a PNG nor a JPEG"));
  folder.write("c.JPEG", "");
  EXPECT_TRUE(has(error_of([&] { read_image_file(folder / "c.JPEG"); }),
                  "c.JPEG: this is neither"));
  EXPECT_TRUE(has(error_of([&] { read_image_file(folder / "d.JPEG"); }),
                  "d.JPEG: No such file"));
}

}  // namespace
}  // namespace polyattn::data::decode_test
