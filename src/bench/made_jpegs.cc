#include "bench/made_jpegs.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/text_file.h"

// It needs what cstdio declares.
#include <jpeglib.h>

namespace polyattn::bench {
namespace {

// Shades, edges and grain. The grain is what the size of the file comes from:
// so much of it makes 500 x 375 pixels about 110 KB, as ImageNet's are.
constexpr double kGrain = 12;

std::vector<std::uint8_t> made_pixels(const JpegSpec& spec,
                                      base::Random& random) {
  std::vector<std::uint8_t> pixels;
  pixels.reserve(static_cast<std::size_t>(spec.width * spec.height * 3));
  const double slope = 0.01 + 0.03 * random.uniform();
  const double bend = 0.01 + 0.03 * random.uniform();
  const auto edge = static_cast<int>(random.below(200) + 20);
  for (int y = 0; y < spec.height; ++y) {
    for (int x = 0; x < spec.width; ++x) {
      const double shade = 60 * std::sin(slope * x) * std::cos(bend * y);
      const double tile = (x / edge + y / edge) % 2 == 0 ? 25 : -25;
      const double grain = kGrain * random.normal();
      for (int c = 0; c < 3; ++c) {
        const double level = 128 + shade + tile * (1 - 0.4 * c) + grain;
        pixels.push_back(
            static_cast<std::uint8_t>(std::min(255.0, std::max(0.0, level))));
      }
    }
  }
  return pixels;
}

std::string encoded(const JpegSpec& spec, std::vector<std::uint8_t> pixels) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = ::jpeg_std_error(&errors);
  ::jpeg_create_compress(&jpeg);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  ::jpeg_mem_dest(&jpeg, &memory, &size);
  jpeg.image_width = static_cast<JDIMENSION>(spec.width);
  jpeg.image_height = static_cast<JDIMENSION>(spec.height);
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  ::jpeg_set_defaults(&jpeg);
  ::jpeg_set_quality(&jpeg, spec.quality, TRUE);
  ::jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < jpeg.image_height) {
    JSAMPROW row =
        pixels.data() + std::size_t{3} * jpeg.next_scanline * jpeg.image_width;
    ::jpeg_write_scanlines(&jpeg, &row, 1);
  }
  ::jpeg_finish_compress(&jpeg);
  ::jpeg_destroy_compress(&jpeg);
  std::string bytes(reinterpret_cast<char*>(memory), size);
  std::free(memory);
  return bytes;
}

}  // namespace

double write_made_jpegs(const std::filesystem::path& folder,
                        const JpegSpec& spec) {
  base::Random random(spec.seed);
  double bytes = 0;
  for (int i = 0; i < spec.count; ++i) {
    const std::string jpeg = encoded(spec, made_pixels(spec, random));
    bytes += static_cast<double>(jpeg.size());
    for (const char* part : {"train", "val"}) {
      const auto path = folder / part / (i % 2 == 0 ? "even" : "odd");
      std::filesystem::create_directories(path);
      base::write_text_file(path / (std::to_string(i) + ".JPEG"), jpeg);
    }
  }
  return bytes / spec.count;
}

}  // namespace polyattn::bench
