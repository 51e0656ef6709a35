#include "data/idx.h"

#include <gtest/gtest.h>

#include "data/load.h"
#include "data/made_files.h"
#include "data/support.h"

namespace polyattn::data::idx_test {
namespace {

using test::bytes_of;
using test::error_of;
using test::gzipped;
using test::has;
using test::idx_bytes;
using test::TemporaryFolder;

std::string refusal(std::string_view bytes) {
  return error_of([&] { parse_idx(bytes_of(bytes), "file"); });
}

TEST(Idx, ReadsShapeAndValues) {
  const std::string bytes = idx_bytes({2, 1, 3}, "abcdef");
  const IdxArray array = parse_idx(bytes_of(bytes), "file");
  EXPECT_EQ(array.shape, (std::vector<std::size_t>{2, 1, 3}));
  ASSERT_EQ(array.values.size(), 6U);
  EXPECT_EQ(array.values[0], std::byte{'a'});
  EXPECT_EQ(array.values[5], std::byte{'f'});
}

TEST(Idx, RefusesAnotherMagicNumber) {
  EXPECT_TRUE(has(refusal(""), "not an idx file"));
  EXPECT_TRUE(has(refusal("\x1f\x8b\x08\x01"), "not an idx file"));
  std::string floats = idx_bytes({1}, "abcd");
  floats[2] = '\x0d';
  EXPECT_TRUE(has(refusal(floats), "0x0d"));
  EXPECT_TRUE(has(refusal(idx_bytes({}, "a")), "0 dimensions"));
  EXPECT_TRUE(has(refusal(idx_bytes(std::vector<std::uint32_t>(9, 1), "a")),
                  "9 dimensions"));
}

TEST(Idx, RefusesEveryOtherLength) {
  const std::string right = idx_bytes({2, 3}, "abcdef");
  for (std::size_t size = 0; size < right.size(); ++size) {
    EXPECT_TRUE(has(refusal(right.substr(0, size)), "file: ")) << size;
  }
  EXPECT_TRUE(has(refusal(right + "g"), "2 x 3 (6 bytes), but 7 bytes follow"));
}

TEST(Idx, RefusesAbsurdAndEmptyShapes) {
  const std::uint32_t most = 0xffffffff;
  EXPECT_TRUE(has(refusal(idx_bytes({most, most, most}, "a")), "absurd"));
  EXPECT_TRUE(has(refusal(idx_bytes({most}, "a")), "4294967295"));
  EXPECT_TRUE(has(refusal(idx_bytes({0, 28, 28}, "")), "empty"));
}

class IdxFolder : public testing::Test {
 protected:
  void SetUp() override {
    put("train-images-idx3-ubyte", idx_bytes({3, 2, 2}, "aaaabbbbcccc"));
    put("train-labels-idx1-ubyte", idx_bytes({3}, std::string("\2\0\1", 3)));
    put("t10k-images-idx3-ubyte", idx_bytes({1, 2, 2}, "defg"));
    put("t10k-labels-idx1-ubyte", idx_bytes({1}, "\1"));
  }
  void put(std::string_view name, std::string_view content) {
    folder_.write(name, content);
  }
  ImageSplits load(const std::string& name = "images") {
    return load_images({.name = name, .path = folder_.path()});
  }
  std::string refusal_of_load(const std::string& name = "images") {
    return error_of([&] { load(name); });
  }

  TemporaryFolder folder_;
};

TEST_F(IdxFolder, IsRead) {
  const ImageSplits splits = load();
  EXPECT_EQ(splits.train.channels, 1);
  EXPECT_EQ(splits.train.height, 2);
  EXPECT_EQ(splits.train.width, 2);
  EXPECT_EQ(splits.train.labels, (std::vector<std::int32_t>{2, 0, 1}));
  EXPECT_EQ(splits.train.pixels.size(), 12U);
  EXPECT_EQ(splits.train.pixels[4], 'b');
  EXPECT_EQ(splits.test.pixels,
            (std::vector<std::uint8_t>{'d', 'e', 'f', 'g'}));
  EXPECT_EQ(splits.class_names, (std::vector<std::string>{"0", "1", "2"}));
}

TEST_F(IdxFolder, IsReadGzippedAndUnderItsOtherName) {
  const ImageSplits plain = load();
  std::filesystem::remove(folder_ / "train-images-idx3-ubyte");
  put("train-images-idx3-ubyte.gz",
      gzipped(idx_bytes({3, 2, 2}, "aaaabbbbcccc")));
  std::filesystem::rename(folder_ / "t10k-images-idx3-ubyte",
                          folder_ / "t10k-images.idx3-ubyte");
  EXPECT_EQ(load().train.pixels, plain.train.pixels);
  EXPECT_EQ(load().test.pixels, plain.test.pixels);
}

TEST_F(IdxFolder, NamesClassesAfterTheSet) {
  EXPECT_EQ(load("mnist").class_names[9], "9");
  EXPECT_EQ(load("fashion-mnist").class_names[9], "Ankle boot");
  EXPECT_TRUE(has(refusal_of_load("cifar10"), "this is not cifar10"));
}

TEST_F(IdxFolder, RefusesLabelsBeyondTheClasses) {
  put("t10k-labels-idx1-ubyte", idx_bytes({1}, "\x0a"));
  EXPECT_TRUE(has(refusal_of_load("mnist"), "is 10, expected is 0 to 9"));
  EXPECT_EQ(load().class_names.size(), 11U);
}

TEST_F(IdxFolder, RefusesCountsThatDiffer) {
  put("train-labels-idx1-ubyte", idx_bytes({2}, "\1\1"));
  EXPECT_TRUE(has(refusal_of_load(), "3 images"));
  EXPECT_TRUE(has(refusal_of_load(), "2 labels"));
}

TEST_F(IdxFolder, RefusesSplitsOfDifferentSizes) {
  put("t10k-images-idx3-ubyte", idx_bytes({1, 1, 2}, "de"));
  EXPECT_TRUE(has(refusal_of_load(), "2 x 2, the test images 1 x 2"));
}

TEST_F(IdxFolder, RefusesAnotherRank) {
  put("train-images-idx3-ubyte", idx_bytes({12}, "aaaabbbbcccc"));
  EXPECT_TRUE(has(refusal_of_load(), "it has 1 dimensions, expected are 3"));
}

TEST_F(IdxFolder, NamesTheFileThatIsDamagedOrMissing) {
  const std::string packed = gzipped(idx_bytes({1}, "\1"));
  std::filesystem::remove(folder_ / "t10k-labels-idx1-ubyte");
  EXPECT_TRUE(has(refusal_of_load(), "there is no t10k-labels-idx1-ubyte"));
  put("t10k-labels-idx1-ubyte.gz", packed.substr(0, packed.size() - 3));
  EXPECT_TRUE(has(refusal_of_load(),
                  "t10k-labels-idx1-ubyte.gz: the gzipped file is "
                  "cut short"));
}

}  // namespace
}  // namespace polyattn::data::idx_test
