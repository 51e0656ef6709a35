#include "data/image.h"

#include <algorithm>
#include <cmath>

namespace polyattn::data {
namespace {

constexpr std::size_t kImageChannels = 3;

// The pixels of a line that make up one pixel of the result.
struct Tap {
  std::size_t begin = 0;
  std::vector<float> weights;  // they sum to 1
};

struct Line {
  std::size_t length;  // pixels there are
  std::size_t scaled;  // pixels after scaling
  std::size_t size;    // of which these, in the middle, are wanted
};

// A triangle around the centre of each pixel of the result, whose half width is
// one pixel of the coarser of the two grids.
std::vector<Tap> taps_of(const Line& line) {
  const double scale =
      static_cast<double>(line.length) / static_cast<double>(line.scaled);
  const double reach = std::max(scale, 1.0);
  const std::size_t first = (line.scaled - line.size) / 2;
  std::vector<Tap> taps(line.size);
  for (std::size_t i = 0; i < line.size; ++i) {
    const double centre = (static_cast<double>(first + i) + 0.5) * scale;
    const double low = std::max(centre - reach, 0.0);
    const double high =
        std::min(centre + reach, static_cast<double>(line.length));
    Tap& tap = taps[i];
    tap.begin = static_cast<std::size_t>(low);
    const auto end = static_cast<std::size_t>(std::ceil(high));
    double sum = 0;
    for (std::size_t j = tap.begin; j < end; ++j) {
      const double distance = std::abs(static_cast<double>(j) + 0.5 - centre);
      const double weight = std::max(0.0, 1 - distance / reach);
      tap.weights.push_back(static_cast<float>(weight));
      sum += weight;
    }
    for (float& weight : tap.weights) weight /= static_cast<float>(sum);
  }
  return taps;
}

std::size_t scaled_length(std::size_t length, std::size_t shorter,
                          std::size_t size) {
  const double exact = static_cast<double>(length) * static_cast<double>(size) /
                       static_cast<double>(shorter);
  return std::max(size, static_cast<std::size_t>(std::llround(exact)));
}

// [height, width, 3] to [height, taps, 3].
std::vector<float> scale_rows(const RgbImage& image,
                              const std::vector<Tap>& taps) {
  std::vector<float> rows(image.height * taps.size() * kImageChannels);
  float* out = rows.data();
  for (std::size_t y = 0; y < image.height; ++y) {
    const std::uint8_t* row = &image.pixels[y * image.width * kImageChannels];
    for (const Tap& tap : taps) {
      const std::uint8_t* pixel = row + tap.begin * kImageChannels;
      for (const float weight : tap.weights) {
        for (std::size_t c = 0; c < kImageChannels; ++c)
          out[c] += weight * pixel[c];
        pixel += kImageChannels;
      }
      out += kImageChannels;
    }
  }
  return rows;
}

}  // namespace

void scale_and_crop(const RgbImage& image, std::size_t size,
                    std::uint8_t* out) {
  const std::size_t shorter = std::min(image.width, image.height);
  const auto line = [&](std::size_t length) {
    return Line{length, scaled_length(length, shorter, size), size};
  };
  const std::vector<float> rows = scale_rows(image, taps_of(line(image.width)));
  const std::vector<Tap> taps = taps_of(line(image.height));
  const std::size_t stride = size * kImageChannels;
  std::vector<float> sum(stride);
  for (std::size_t y = 0; y < size; ++y) {
    std::fill(sum.begin(), sum.end(), 0.0F);
    const float* row = &rows[taps[y].begin * stride];
    for (const float weight : taps[y].weights) {
      for (std::size_t i = 0; i < stride; ++i) sum[i] += weight * row[i];
      row += stride;
    }
    for (std::size_t i = 0; i < stride; ++i) {
      const float value = std::clamp(std::round(sum[i]), 0.0F, 255.0F);
      const std::size_t x = i / kImageChannels;
      out[(i % kImageChannels * size + y) * size + x] =
          static_cast<std::uint8_t>(value);
    }
  }
}

}  // namespace polyattn::data
