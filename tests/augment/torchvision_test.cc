// Every operation against the images that make_torchvision_images.py wrote:
// they differ by one grey level at most, and almost nowhere.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "augment/operation.h"
#include "augment/policy.h"
#include "augment/resize.h"
#include "augment/tone.h"

namespace polyattn::augment::torchvision_test {
namespace {

namespace fs = std::filesystem;

const std::map<std::string, Operation> kOperations = {
    {"Identity", Operation::kIdentity},
    {"ShearX", Operation::kShearX},
    {"ShearY", Operation::kShearY},
    {"TranslateX", Operation::kTranslateX},
    {"TranslateY", Operation::kTranslateY},
    {"Rotate", Operation::kRotate},
    {"Brightness", Operation::kBrightness},
    {"Color", Operation::kColor},
    {"Contrast", Operation::kContrast},
    {"Sharpness", Operation::kSharpness},
    {"Posterize", Operation::kPosterize},
    {"Solarize", Operation::kSolarize},
    {"SolarizeAdd", Operation::kSolarizeAdd},
    {"AutoContrast", Operation::kAutoContrast},
    {"Equalize", Operation::kEqualize},
    {"Invert", Operation::kInvert}};

fs::path folder() {
  const char* path = std::getenv("POLYATTN_IMAGES");
  if (path == nullptr) throw std::runtime_error("POLYATTN_IMAGES is not set");
  return path;
}

Image read_image(const fs::path& path, std::int64_t width, std::int64_t height,
                 std::int64_t channels) {
  Image image = blank_image(width, height, channels);
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(image.pixels.data()),
            static_cast<std::streamsize>(image.pixels.size()));
  if (!file || file.peek() != EOF) {
    throw std::runtime_error(path.string() + " has another size");
  }
  return image;
}

Image made(const std::string& name, Interpolation interpolation, Image image,
           std::istream& numbers) {
  if (name == "centre") {
    CentreCrop crop{.interpolation = interpolation};
    numbers >> crop.shorter >> crop.size;
    return resize(image, centre_crop(image.width, image.height, crop));
  }
  if (name == "part") {
    Box box;
    std::int64_t size = 0;
    numbers >> box.top >> box.left >> box.height >> box.width >> size;
    return resize(image, resize_to(box, size, interpolation));
  }
  double number = 0;
  numbers >> number;
  if (name == "Hue") {
    adjust_hue(image, number);
  } else {
    apply(kOperations.at(name), number,
          {.interpolation = interpolation, .colour = {124, 116, 104}}, image);
  }
  return image;
}

TEST(Torchvision, MakesTheSameImages) {
  std::ifstream cases(folder() / "cases.txt");
  std::set<std::string> seen;
  std::string line;
  for (int index = 0; std::getline(cases, line); ++index) {
    std::istringstream words(line);
    std::string name, mode;
    std::int64_t channels = 0, width = 0, height = 0, w = 0, h = 0;
    words >> name >> mode >> channels >> width >> height >> w >> h;
    seen.insert(name);
    const std::string stem = std::to_string(index);
    const Image image = made(
        name,
        mode == "bicubic" ? Interpolation::kBicubic : Interpolation::kBilinear,
        read_image(folder() / (stem + ".before"), width, height, channels),
        words);
    const Image expected =
        read_image(folder() / (stem + ".after"), w, h, channels);
    ASSERT_EQ(image.width, w) << line;
    ASSERT_EQ(image.height, h) << line;
    int worst = 0;
    std::size_t others = 0;
    for (std::size_t i = 0; i < expected.pixels.size(); ++i) {
      const int difference = std::abs(image.pixels[i] - expected.pixels[i]);
      worst = std::max(worst, difference);
      others += difference > 0 ? 1 : 0;
    }
    EXPECT_LE(worst, 1) << line;
    EXPECT_LE(others, expected.pixels.size() / 100) << line;
  }
  EXPECT_EQ(seen.size(), kOperations.size() + 3);
}

// What the policies draw is what torchvision's may draw, and all of it.
TEST(Torchvision, DrawsTheSameMagnitudes) {
  std::map<std::string, std::map<Operation, std::set<long>>> allowed;
  std::ifstream space(folder() / "space.txt");
  std::string policy, name;
  int bin = 0;
  double magnitude = 0;
  constexpr int kMagnitude = 9;
  const auto rounded = [](double x) { return std::lround(x * 1e4); };
  while (space >> policy >> name >> bin >> magnitude) {
    if (policy == "ra" && bin != kMagnitude) continue;
    allowed[policy][kOperations.at(name)].insert(rounded(magnitude));
  }
  ASSERT_EQ(allowed.size(), 2U);
  for (const auto& [key, operations] : allowed) {
    const PolicyOptions options{.kind = key == "ra" ? PolicyKind::kRandAugment
                                                    : PolicyKind::kTrivialWide,
                                .magnitude = kMagnitude};
    base::Random random(1);
    std::map<Operation, std::set<long>> drawn;
    for (int i = 0; i < 20000; ++i) {
      for (const Choice& choice : draw_policy(options, 331, 662, random)) {
        drawn[choice.operation].insert(rounded(choice.magnitude));
      }
    }
    EXPECT_EQ(drawn, operations) << key;
  }
}

}  // namespace
}  // namespace polyattn::augment::torchvision_test
