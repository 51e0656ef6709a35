#include "data/cifar.h"

#include <gtest/gtest.h>

#include "data/load.h"
#include "data/made_files.h"
#include "data/support.h"

namespace polyattn::data::cifar_test {
namespace {

using test::bytes_of;
using test::error_of;
using test::has;
using test::png_bytes;
using test::read_text;
using test::TemporaryFolder;

constexpr std::size_t kPlane = 1024;

// Planes of one value each: the three channels of an image.
std::string record(int label, int value) {
  std::string bytes(1, static_cast<char>(label));
  for (int c = 0; c < 3; ++c) {
    bytes += std::string(kPlane, static_cast<char>(value + c));
  }
  return bytes;
}

// The same image as a row of a PNG.
std::string png_row(int value) {
  std::string row;
  for (std::size_t i = 0; i < kPlane; ++i) {
    for (int c = 0; c < 3; ++c) row.push_back(static_cast<char>(value + c));
  }
  return row;
}

void write_binary(const TemporaryFolder& folder,
                  const std::string& prefix = "") {
  for (int i = 1; i <= 5; ++i) {
    folder.write(prefix + "data_batch_" + std::to_string(i) + ".bin",
                 record(i, 10 * i) + record(0, 200));
  }
  folder.write(prefix + "test_batch.bin", record(9, 90) + record(8, 80));
}

void write_png(const TemporaryFolder& folder) {
  for (int i = 1; i <= 5; ++i) {
    folder.write("data_batch_" + std::to_string(i) + ".png",
                 png_bytes({.width = kPlane,
                            .height = 2,
                            .rows = png_row(10 * i) + png_row(200)}));
  }
  folder.write(
      "test_batch.png",
      png_bytes(
          {.width = kPlane, .height = 2, .rows = png_row(90) + png_row(80)}));
  folder.write("train_lables.json", "[1,0,2,0,3,0,4,0,5,0]");
  folder.write("test_lables.json", "[9,8]");
}

ImageSplits load(const TemporaryFolder& folder) {
  return load_images({.name = "cifar10", .path = folder.path()});
}

std::string refusal(const TemporaryFolder& folder) {
  return error_of([&] { load(folder); });
}

void expect_the_images(const ImageSplits& splits) {
  EXPECT_EQ(splits.train.labels,
            (std::vector<std::int32_t>{1, 0, 2, 0, 3, 0, 4, 0, 5, 0}));
  EXPECT_EQ(splits.test.labels, (std::vector<std::int32_t>{9, 8}));
  EXPECT_EQ(splits.train.channels, 3);
  EXPECT_EQ(splits.train.height, 32);
  EXPECT_EQ(splits.train.width, 32);
  ASSERT_EQ(splits.train.pixels.size(), 10 * 3 * kPlane);
  EXPECT_EQ(splits.train.pixels[0], 10);
  EXPECT_EQ(splits.train.pixels[kPlane], 11);
  EXPECT_EQ(splits.train.pixels[9 * 3 * kPlane - 1], 52);
  EXPECT_EQ(splits.test.pixels.back(), 82);
  ASSERT_EQ(splits.class_names.size(), 10U);
  EXPECT_EQ(splits.class_names[6], "frog");
}

TEST(Cifar, ReadsBinaryBatches) {
  const TemporaryFolder folder;
  write_binary(folder);
  expect_the_images(load(folder));
}

TEST(Cifar, ReadsTheFolderOfTheOriginalArchive) {
  const TemporaryFolder folder;
  write_binary(folder, "cifar-10-batches-bin/");
  expect_the_images(load(folder));
}

TEST(Cifar, ReadsThePngForm) {
  const TemporaryFolder folder;
  write_png(folder);
  expect_the_images(load(folder));
}

TEST(Cifar, ConvertsThePngFormToTheSameBytes) {
  const TemporaryFolder png;
  const TemporaryFolder converted;
  const TemporaryFolder binary;
  write_png(png);
  write_binary(binary);
  cifar_png_to_binary(png.path(), converted.path());
  for (const char* name :
       {"data_batch_1.bin", "data_batch_5.bin", "test_batch.bin"}) {
    EXPECT_EQ(read_text(converted / name), read_text(binary / name)) << name;
  }
}

TEST(Cifar, RefusesABatchOfTheWrongLength) {
  const TemporaryFolder folder;
  write_binary(folder);
  for (const std::string& content :
       {std::string(), record(1, 1).substr(1), record(1, 1) + "x"}) {
    folder.write("data_batch_3.bin", content);
    EXPECT_TRUE(has(refusal(folder), "data_batch_3.bin: it has " +
                                         std::to_string(content.size()) +
                                         " bytes"));
  }
}

TEST(Cifar, RefusesALabelOutOfRange) {
  const TemporaryFolder folder;
  write_binary(folder);
  folder.write("test_batch.bin", record(0, 0) + record(10, 0));
  EXPECT_TRUE(has(refusal(folder),
                  "test_batch.bin: the label of image 1 is "
                  "10"));
}

TEST(Cifar, RefusesAMissingBatch) {
  const TemporaryFolder folder;
  write_binary(folder);
  std::filesystem::remove(folder / "data_batch_4.bin");
  EXPECT_TRUE(has(refusal(folder), "data_batch_4.bin"));
}

TEST(Cifar, RefusesAPngOfTheWrongWidth) {
  const TemporaryFolder folder;
  write_png(folder);
  folder.write("data_batch_2.png", png_bytes({.width = 1023, .height = 2}));
  EXPECT_TRUE(has(refusal(folder), "data_batch_2.png: it is 1023 pixels wide"));
}

TEST(Cifar, RefusesAsManyLabelsAsThereAreNoRows) {
  const TemporaryFolder folder;
  write_png(folder);
  folder.write("test_lables.json", "[9,8,7]");
  EXPECT_TRUE(has(refusal(folder), "3 labels"));
  EXPECT_TRUE(has(refusal(folder), "2 rows"));
  folder.write("test_lables.json", "[9,10]");
  EXPECT_TRUE(has(refusal(folder), "label 1 is 10"));
}

TEST(Cifar, RefusesOfSeveralBadPngsTheFirst) {
  const TemporaryFolder folder;
  write_png(folder);
  folder.write("data_batch_2.png", "no");
  folder.write("data_batch_5.png", "no");
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(has(refusal(folder), "data_batch_2.png: this is not a PNG"));
  }
}

}  // namespace
}  // namespace polyattn::data::cifar_test
