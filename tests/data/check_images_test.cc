#include "data/check_images.h"

#include <gtest/gtest.h>

#include "data/made_files.h"
#include "data/support.h"

namespace polyattn::data::check_images_test {
namespace {

TEST(DamagedImages, AreNamedInTheirOrder) {
  const test::TemporaryFolder folder;
  ImageFileSet files{.folder = (folder / "").string()};
  const std::string jpeg = test::jpeg_bytes(16, 16, 1, std::string(256, 'x'));
  for (int i = 0; i < 130; ++i) {
    const std::string name = std::to_string(i) + ".jpg";
    folder.write(name, i % 50 == 7 ? jpeg.substr(0, jpeg.size() - 9) : jpeg);
    files.add(name, 0);
  }
  folder.write("90.jpg", "no");
  std::filesystem::remove(folder / "3.jpg");
  std::size_t last = 0;
  const auto problems =
      damaged_images(files, [&](std::size_t done) { last = done; });
  EXPECT_EQ(last, 130U);
  ASSERT_EQ(problems.size(), 5U);
  EXPECT_TRUE(test::has(problems[0], "3.jpg: No such file"));
  EXPECT_TRUE(test::has(problems[1], "/7.jpg: the JPEG is damaged"));
  EXPECT_TRUE(test::has(problems[2], "/57.jpg: the JPEG is damaged"));
  EXPECT_TRUE(test::has(problems[3], "/90.jpg: this is neither"));
  EXPECT_TRUE(test::has(problems[4], "/107.jpg: the JPEG is damaged"));
}

}  // namespace
}  // namespace polyattn::data::check_images_test
