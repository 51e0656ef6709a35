// An image of bytes, which every function of this room takes and gives.
#pragma once

#include <cstdint>
#include <vector>

namespace polyattn::augment {

struct Image {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::int64_t channels = 3;              // 1 is grey, 3 is RGB
  std::vector<std::uint8_t> pixels = {};  // [height, width, channels]

  std::int64_t stride() const { return width * channels; }
  const std::uint8_t* row(std::int64_t y) const {
    return pixels.data() + y * stride();
  }
  std::uint8_t* row(std::int64_t y) { return pixels.data() + y * stride(); }
};

inline Image blank_image(std::int64_t width, std::int64_t height,
                         std::int64_t channels) {
  Image image{width, height, channels};
  image.pixels.resize(static_cast<std::size_t>(width * height * channels));
  return image;
}

// How a value between pixels is made from those around it.
enum class Interpolation { kBilinear, kBicubic };

}  // namespace polyattn::augment
