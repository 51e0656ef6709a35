// One image in memory, made smaller or larger.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace polyattn::data {

// The pixels of a file that is decoded: more than any photograph has, less than
// what would fill the memory.
inline constexpr std::uint64_t kMaxPixels = std::uint64_t{1} << 26;

struct ImageSize {
  std::size_t width = 0;
  std::size_t height = 0;
};

struct RgbImage {
  std::size_t width = 0;
  std::size_t height = 0;
  std::vector<std::uint8_t> pixels;  // [height, width, 3]
};

// Scales the image so that its shorter side has `size` pixels, and cuts the
// middle out of the longer one: [3, size, size] at `out`. Scaling is linear
// interpolation; when it makes things smaller, over as many pixels as fall on
// one, so that nothing is skipped.
void scale_and_crop(const RgbImage& image, std::size_t size, std::uint8_t* out);

}  // namespace polyattn::data
