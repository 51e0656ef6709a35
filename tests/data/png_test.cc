// PNG and JPEG: every kind becomes RGB, and damage is an error.
#include "data/png.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "data/jpeg.h"
#include "data/made_files.h"
#include "data/support.h"

namespace polyattn::data::png_test {
namespace {

using test::bytes_of;
using test::error_of;
using test::has;
using test::jpeg_bytes;
using test::png_bytes;
using test::PngSpec;
using Pixels = std::vector<std::uint8_t>;

// The types of the format, as its specification numbers them.
constexpr int kGrey = 0;
constexpr int kRgb = 2;
constexpr int kPalette = 3;
constexpr int kGreyAlpha = 4;
constexpr int kRgba = 6;

Pixels decoded(const PngSpec& spec) {
  return decode_png(bytes_of(png_bytes(spec)), "a.png").pixels;
}

std::string png_refusal(std::string_view bytes) {
  return error_of([&] { decode_png(bytes_of(bytes), "a.png"); });
}

std::string jpeg_refusal(std::string_view bytes) {
  return error_of([&] { decode_jpeg(bytes_of(bytes), 8, "a.jpg"); });
}

TEST(Png, EveryKindBecomesRgb) {
  EXPECT_EQ(decoded({.width = 2, .colour_type = kRgb, .rows = "abcdef"}),
            (Pixels{'a', 'b', 'c', 'd', 'e', 'f'}));
  EXPECT_EQ(decoded({.width = 2, .colour_type = kGrey, .rows = "ab"}),
            (Pixels{'a', 'a', 'a', 'b', 'b', 'b'}));
  EXPECT_EQ(
      decoded(
          {.width = 4, .colour_type = kGrey, .bit_depth = 1, .rows = "\x50"}),
      (Pixels{0, 0, 0, 255, 255, 255, 0, 0, 0, 255, 255, 255}));
  EXPECT_EQ(decoded({.width = 2,
                     .colour_type = kPalette,
                     .rows = std::string("\1\0", 2),
                     .palette = "abcxyz"}),
            (Pixels{'x', 'y', 'z', 'a', 'b', 'c'}));
  EXPECT_EQ(decoded({.colour_type = kGreyAlpha, .rows = "a\1"}),
            (Pixels{'a', 'a', 'a'}));
  EXPECT_EQ(decoded({.colour_type = kRgba, .rows = "abc\1"}),
            (Pixels{'a', 'b', 'c'}));
  EXPECT_EQ(decoded({.colour_type = kRgb,
                     .bit_depth = 16,
                     .rows = std::string("\xff\xff\x80\x80\0\0", 6)}),
            (Pixels{255, 128, 0}));
}

TEST(Png, InterlacedIsTheSame) {
  PngSpec spec{.width = 13, .height = 11};
  for (int i = 0; i < 13 * 11 * 3; ++i) {
    spec.rows.push_back(static_cast<char>(i * 31));
  }
  const Pixels plain = decoded(spec);
  spec.interlaced = true;
  EXPECT_EQ(decoded(spec), plain);
}

TEST(Png, CutShortAnywhereIsAnError) {
  const std::string whole = png_bytes({.width = 9, .height = 9});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_TRUE(has(png_refusal(whole.substr(0, size)), "a.png: ")) << size;
  }
}

// Every bit counts: headers and data are under checksums. That of the last
// chunk, which is empty, libpng 1.6.48 does not look at.
TEST(Png, AnyFlippedBitIsAnError) {
  const std::string whole = png_bytes({.width = 9, .height = 9});
  ASSERT_EQ(whole.substr(whole.size() - 8, 4), "IEND");
  for (std::size_t i = 0; i + 4 < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] ^= 1;
    EXPECT_NE(png_refusal(damaged), "") << i;
  }
}

// With a checksum that is right, or libpng would not look any further.
std::string with_size(std::uint32_t width, std::uint32_t height) {
  std::string bytes = png_bytes({});
  const std::string claim = test::idx_bytes({width, height}, "").substr(4);
  bytes.replace(16, 8, claim);
  std::uint32_t crc = 0xffffffff;
  for (std::size_t i = 12; i < 29; ++i) {
    crc ^= static_cast<unsigned char>(bytes[i]);
    for (int bit = 0; bit < 8; ++bit) {
      crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
  }
  return bytes.replace(29, 4, test::idx_bytes({~crc}, "").substr(4));
}

TEST(Png, ClaimsBeyondTheFileAreRefusedBeforeAnythingIsAllocated) {
  EXPECT_EQ(png_refusal(with_size(1, 1)), "");
  EXPECT_TRUE(has(png_refusal(with_size(1000000, 1000000)), "more than"));
  EXPECT_TRUE(has(png_refusal(with_size(8000, 8000)), "cannot be in"));
}

TEST(Jpeg, GreyColourAndInksBecomeRgb) {
  const auto near = [](int components, const std::string& pixel,
                       bool ycck = false) {
    std::string pixels;
    for (int i = 0; i < 64; ++i) pixels += pixel;
    const RgbImage image = decode_jpeg(
        bytes_of(jpeg_bytes(8, 8, components, pixels, ycck)), 8, "a.jpg");
    EXPECT_EQ(image.width, 8U);
    EXPECT_EQ(image.height, 8U);
    return Pixels(image.pixels.begin(), image.pixels.begin() + 3);
  };
  EXPECT_EQ(near(1, "\x64"), (Pixels{100, 100, 100}));
  const Pixels colour = near(3, "\xc8\x64\x32");
  EXPECT_NEAR(colour[0], 200, 2);
  EXPECT_NEAR(colour[1], 100, 2);
  EXPECT_NEAR(colour[2], 50, 2);
  // What Adobe stores is the paper that is left: 200 * 128 / 255.
  for (const bool ycck : {false, true}) {
    const Pixels inks = near(4, "\xc8\x64\x32\x80", ycck);
    EXPECT_NEAR(inks[0], 100, 2);
    EXPECT_NEAR(inks[1], 50, 2);
    EXPECT_NEAR(inks[2], 25, 2);
  }
}

TEST(Jpeg, LargeImagesAreDecodedSmaller) {
  const std::string bytes =
      jpeg_bytes(128, 64, 1, std::string(128 * 64, '\x64'));
  for (const auto& [min_side, width] :
       std::vector<std::pair<std::size_t, std::size_t>>{
           {64, 128}, {17, 128}, {16, 64}, {8, 32}, {4, 16}, {1, 16}}) {
    const RgbImage image = decode_jpeg(bytes_of(bytes), min_side, "a.jpg");
    EXPECT_EQ(image.width, width) << min_side;
    EXPECT_EQ(image.height, width / 2) << min_side;
    EXPECT_EQ(image.pixels[0], 100);
  }
}

TEST(Jpeg, CutShortAnywhereIsAnError) {
  std::string pixels;
  for (int i = 0; i < 32 * 32 * 3; ++i) {
    pixels.push_back(static_cast<char>(i * i));
  }
  const std::string whole = jpeg_bytes(32, 32, 3, pixels);
  // The last two bytes only say that the end is reached.
  for (std::size_t size = 0; size + 2 < whole.size(); ++size) {
    EXPECT_TRUE(has(jpeg_refusal(whole.substr(0, size)), "a.jpg: ")) << size;
  }
}

TEST(Jpeg, ClaimsBeyondTheFileAreRefused) {
  const std::string bytes = jpeg_bytes(8, 8, 1, std::string(64, 'x'));
  const std::size_t frame = bytes.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  std::string absurd = bytes;
  absurd.replace(frame + 5, 4, "\xff\xdc\xff\xdc");
  EXPECT_TRUE(has(jpeg_refusal(absurd), "65500 x 65500 pixels are more"));
  std::string large = bytes;
  large.replace(frame + 5, 4, "\x10\x10\x10\x10");
  EXPECT_TRUE(has(jpeg_refusal(large), "4112 x 4112 pixels cannot be in"));
}

TEST(Jpeg, OtherBytesAreRefused) {
  EXPECT_TRUE(has(jpeg_refusal("GIF89a"), "not a JPEG"));
  EXPECT_TRUE(has(jpeg_refusal("\xff\xd8\xff"), "damaged"));
  EXPECT_TRUE(has(png_refusal("GIF89a"), "not a PNG"));
}

}  // namespace
}  // namespace polyattn::data::png_test
