#include "data/image_folder.h"

#include <gtest/gtest.h>

#include "data/image.h"
#include "data/load.h"
#include "data/made_files.h"
#include "data/support.h"

namespace polyattn::data::image_folder_test {
namespace {

using test::error_of;
using test::has;
using test::jpeg_bytes;
using test::png_bytes;
using test::TemporaryFolder;
using Pixels = std::vector<std::uint8_t>;

std::string flat_png(std::uint32_t width, std::uint32_t height, char value) {
  return png_bytes(
      {.width = width,
       .height = height,
       .rows = std::string(std::size_t{3} * width * height, value)});
}

std::string flat_jpeg(std::uint32_t width, std::uint32_t height, char value) {
  return jpeg_bytes(width, height, 1, std::string(width * height, value));
}

Pixels scaled(std::size_t width, std::size_t height, const Pixels& grey,
              std::size_t size) {
  RgbImage image{width, height, {}};
  for (const std::uint8_t value : grey) {
    image.pixels.insert(image.pixels.end(), {value, value, value});
  }
  Pixels out(3 * size * size);
  scale_and_crop(image, size, out.data());
  return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(size * size)};
}

TEST(Image, OfTheRightSizeStaysAsItIs) {
  EXPECT_EQ(scaled(2, 2, {1, 2, 3, 4}, 2), (Pixels{1, 2, 3, 4}));
}

TEST(Image, ChannelsBecomePlanes) {
  Pixels out(6);
  scale_and_crop({1, 2, {1, 2, 3, 1, 2, 3}}, 1, out.data());
  EXPECT_EQ(Pixels(out.begin(), out.begin() + 3), (Pixels{1, 2, 3}));
}

TEST(Image, TheMiddleOfTheLongerSideIsKept) {
  EXPECT_EQ(scaled(4, 2, {9, 1, 2, 9, 9, 3, 4, 9}, 2), (Pixels{1, 2, 3, 4}));
  EXPECT_EQ(scaled(2, 4, {9, 9, 1, 2, 3, 4, 9, 9}, 2), (Pixels{1, 2, 3, 4}));
}

// Linear: the centres of the new pixels lie a quarter beside the old ones.
TEST(Image, GrowsByInterpolation) {
  EXPECT_EQ(
      scaled(2, 2, {0, 100, 0, 100}, 4),
      (Pixels{0, 25, 75, 100, 0, 25, 75, 100, 0, 25, 75, 100, 0, 25, 75, 100}));
}

// 16 pixels become one, of which the 8 in the middle are bright: the result is
// their mean, not a sample from the middle. At the borders, where the triangle
// is cut, the middle counts for 7.5 in 14.
TEST(Image, ShrinksByAveraging) {
  Pixels stripes;
  for (int i = 0; i < 64 * 64; ++i) {
    const int x = i % 16;
    stripes.push_back(x >= 4 && x < 12 ? 200 : 0);
  }
  const Pixels small = scaled(64, 64, stripes, 4);
  EXPECT_NEAR(small[0], 107, 1);
  EXPECT_NEAR(small[1], 100, 1);
  EXPECT_NEAR(small[6], 100, 1);
}

TEST(Image, FlatStaysFlatAtAnySize) {
  for (const std::size_t size : {1, 2, 3, 7, 31, 32, 33, 100}) {
    for (const std::uint8_t value :
         scaled(37, 23, Pixels(37 * 23, 123), size)) {
      ASSERT_EQ(value, 123) << size;
    }
  }
}

ImageSplits load(const TemporaryFolder& folder, std::int64_t size = 4) {
  return load_images(
      {.name = "images", .path = folder.path(), .image_size = size});
}

std::string refusal(const TemporaryFolder& folder, std::int64_t size = 4) {
  return error_of([&] { load(folder, size); });
}

void write_images(const TemporaryFolder& folder) {
  folder.write("train/dog/2.png", flat_png(8, 8, 20));
  folder.write("train/dog/1.JPEG", flat_jpeg(40, 30, 10));
  folder.write("train/cat/images/deep.jpg", flat_jpeg(4, 4, 30));
  folder.write("train/cat/notes.txt", "not an image");
  folder.write("train/.hidden/x.png", "not a class");
  folder.write("test/dog/x.png", flat_png(4, 9, 40));
}

TEST(ImageFolder, IsReadInTheOrderOfNames) {
  const TemporaryFolder folder;
  write_images(folder);
  const ImageSplits splits = load(folder);
  EXPECT_EQ(splits.class_names, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(splits.train.labels, (std::vector<std::int32_t>{0, 1, 1}));
  EXPECT_EQ(splits.test.labels, (std::vector<std::int32_t>{1}));
  EXPECT_EQ(splits.train.channels, 3);
  EXPECT_EQ(splits.train.height, 4);
  EXPECT_EQ(splits.train.width, 4);
  ASSERT_EQ(splits.train.pixels.size(), 3U * 48);
  EXPECT_EQ(splits.train.pixels[0], 30);
  EXPECT_EQ(splits.train.pixels[48], 10);
  EXPECT_EQ(splits.train.pixels[96], 20);
  EXPECT_EQ(splits.test.pixels, Pixels(48, 40));
}

TEST(ImageFolder, TakesValInTheStead) {
  for (const char* name : {"val", "validation"}) {
    const TemporaryFolder folder;
    write_images(folder);
    std::filesystem::rename(folder / "test", folder / name);
    EXPECT_EQ(load(folder).test.count(), 1U);
  }
  const TemporaryFolder folder;
  write_images(folder);
  std::filesystem::remove_all(folder / "test");
  EXPECT_TRUE(has(refusal(folder), "no folder test or val or validation"));
}

TEST(ImageFolder, LooksAtTheContentNotAtTheName) {
  const TemporaryFolder folder;
  write_images(folder);
  folder.write("train/dog/1.JPEG", flat_png(4, 4, 11));
  EXPECT_EQ(load(folder).train.pixels[48], 11);
}

TEST(ImageFolder, NamesTheFirstDamagedFile) {
  const TemporaryFolder folder;
  write_images(folder);
  for (int i = 0; i < 50; ++i) {
    folder.write("train/dog/3" + std::to_string(i) + ".png", "no");
  }
  folder.write("train/dog/1.JPEG", flat_jpeg(40, 30, 10).substr(0, 300));
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(has(refusal(folder), "dog/1.JPEG: the JPEG is damaged"));
  }
  folder.write("train/dog/1.JPEG", "");
  EXPECT_TRUE(has(refusal(folder), "neither a PNG nor a JPEG"));
}

TEST(ImageFolder, NeedsClassesAndImages) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "train");
  std::filesystem::create_directories(folder / "test");
  EXPECT_TRUE(has(refusal(folder), "no folders of classes"));
  std::filesystem::create_directories(folder / "train/cat");
  EXPECT_TRUE(has(refusal(folder), "train: there are no images"));
  folder.write("train/dog/1.png", flat_png(4, 4, 1));
  EXPECT_TRUE(has(refusal(folder), "train/cat: this class has no images"));
  folder.write("train/cat/1.png", flat_png(4, 4, 1));
  EXPECT_TRUE(has(refusal(folder), "test: there are no images"));
  folder.write("test/fish/1.png", flat_png(4, 4, 1));
  EXPECT_TRUE(has(refusal(folder), "test/fish: there is no class"));
}

TEST(ImageFolder, RefusesAbsurdSizes) {
  const TemporaryFolder folder;
  write_images(folder);
  for (const std::int64_t size : {-1, 0, 4097}) {
    EXPECT_TRUE(has(refusal(folder, size), "expected is 1 to 4096")) << size;
  }
}

TEST(Images, NeedAPathThatIsThere) {
  const TemporaryFolder folder;
  EXPECT_TRUE(has(error_of([] { load_images({.name = "images"}); }), "path"));
  EXPECT_TRUE(has(error_of([] { load_images({.name = "pictures"}); }),
                  "fashion-mnist, mnist, cifar10, images"));
  EXPECT_TRUE(has(refusal(folder), "there are no images in it"));
  EXPECT_TRUE(has(error_of([&] {
                    load_images({.name = "images", .path = folder / "absent"});
                  }),
                  "there is no such folder"));
}

TEST(Images, OfASetThatIsNotThereSayHowToFetchIt) {
  const TemporaryFolder folder;
  const test::TestVariable cache("POLYATTN_DATA", folder.path().string());
  EXPECT_TRUE(has(error_of([] { load_images({.name = "cifar10"}); }),
                  "polyattn data fetch cifar10"));
}

}  // namespace
}  // namespace polyattn::data::image_folder_test
