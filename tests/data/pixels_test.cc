// Images as sequences of grey pixels.
#include "data/pixels.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "data/sequence_support.h"

namespace polyattn::data {
namespace pixels_test {

using test::error_of;
using test::sequence;

TEST(Pixels, ReadsRowAfterRowInGrey) {
  const ImageSet images{.channels = 3,
                        .height = 1,
                        .width = 4,
                        // Red, green and blue planes of each image.
                        .pixels = {255, 0, 0,   10, 0,   255, 0, 20,  //
                                   0,   0, 255, 30,                   //
                                   255, 0, 1,   2,  255, 0,   1, 2,   //
                                   255, 0, 1,   2},
                        .labels = {3, 1}};
  const SequenceSet set = grey_pixels(images);
  // 76.245, 149.685, 29.07, and 2.99 + 11.74 + 3.42.
  EXPECT_EQ(sequence(set, 0), (std::vector<std::uint8_t>{76, 150, 29, 18}));
  EXPECT_EQ(sequence(set, 1), (std::vector<std::uint8_t>{255, 0, 1, 2}));
  EXPECT_EQ(set.labels, images.labels);
}

TEST(Pixels, GreyImagesStayAsTheyAre) {
  const ImageSet images{.channels = 1,
                        .height = 2,
                        .width = 2,
                        .pixels = {0, 1, 2, 255},
                        .labels = {0}};
  EXPECT_EQ(grey_pixels(images).tokens, images.pixels);
}

TEST(Pixels, RefusesOtherChannels) {
  const ImageSet images{
      .channels = 2, .height = 1, .width = 1, .pixels = {0, 1}, .labels = {0}};
  EXPECT_EQ(error_of([&] { grey_pixels(images); }),
            "[pixels] images of 2 channels are no grey or coloured ones");
}

// One image for each batch of CIFAR-10.
TEST(LoadPixels, ReadsCifarWhereItIs) {
  const test::TemporaryFolder folder;
  const std::string pixels(3072, '\x07');
  for (const std::string name :
       {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4",
        "data_batch_5", "test_batch"}) {
    folder.write(name + ".bin", "\x05" + pixels);
  }
  const SequenceSplits splits =
      load_pixels({.name = "cifar10", .path = folder.path()});
  EXPECT_EQ(splits.train.count(), 5U);
  EXPECT_EQ(splits.test.labels, (std::vector<std::int32_t>{5}));
  EXPECT_EQ(sequence(splits.test, 0), std::vector<std::uint8_t>(1024, 7));
  EXPECT_EQ(splits.vocabulary, 256);
  EXPECT_EQ(splits.class_names.at(5), "dog");
}

}  // namespace pixels_test
}  // namespace polyattn::data
