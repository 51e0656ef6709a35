#include "augment/tone.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace polyattn::augment {
namespace {

using Table = std::array<std::uint8_t, 256>;
using Histogram = std::array<std::int64_t, 256>;

// from + factor * (to - from). A byte is what is left of it, not its nearest.
std::uint8_t blend(int from, int to, float factor) {
  const float value =
      static_cast<float>(from) + factor * static_cast<float>(to - from);
  return static_cast<std::uint8_t>(std::clamp(value, 0.0F, 255.0F));
}

// The same brightness in 16 bits.
std::uint8_t grey_of(const std::uint8_t* rgb) {
  return static_cast<std::uint8_t>(
      (rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + (1 << 15)) >> 16);
}

template <typename MakeLevel>
Table make_table(const MakeLevel& level) {
  Table table;
  for (int i = 0; i < 256; ++i) {
    table[static_cast<std::size_t>(i)] =
        static_cast<std::uint8_t>(std::clamp<int>(level(i), 0, 255));
  }
  return table;
}

void look_up(Image& image, const Table& table) {
  for (std::uint8_t& level : image.pixels) level = table[level];
}

Histogram histogram_of(const Image& image, std::int64_t channel) {
  Histogram counts{};
  const std::int64_t size = image.stride() * image.height;
  for (std::int64_t i = channel; i < size; i += image.channels) {
    ++counts[image.pixels[static_cast<std::size_t>(i)]];
  }
  return counts;
}

// A table for each channel, made from its histogram.
template <typename MakeTable>
void look_up_by_channel(Image& image, const MakeTable& table_of) {
  const std::int64_t size = image.stride() * image.height;
  for (std::int64_t c = 0; c < image.channels; ++c) {
    const Table table = table_of(histogram_of(image, c));
    for (std::int64_t i = c; i < size; i += image.channels) {
      std::uint8_t& level = image.pixels[static_cast<std::size_t>(i)];
      level = table[level];
    }
  }
}

Table unchanged() {
  return make_table([](int level) { return level; });
}

Table stretching(const Histogram& counts) {
  const auto used = [](std::int64_t count) { return count > 0; };
  const auto low =
      std::find_if(counts.begin(), counts.end(), used) - counts.begin();
  const auto high = std::find_if(counts.rbegin(), counts.rend(), used).base() -
                    1 - counts.begin();
  if (high <= low) return unchanged();
  const double scale = 255.0 / static_cast<double>(high - low);
  const double offset = -static_cast<double>(low) * scale;
  return make_table(
      [&](int level) { return static_cast<int>(level * scale + offset); });
}

Table equalizing(const Histogram& counts) {
  const auto last = std::find_if(counts.rbegin(), counts.rend(),
                                 [](std::int64_t count) { return count > 0; });
  const std::int64_t all =
      std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  const std::int64_t step = (all - *last) / 255;
  if (step == 0) return unchanged();
  std::int64_t sum = step / 2;
  return make_table([&](int level) {
    const std::int64_t value = sum / step;
    sum += counts[static_cast<std::size_t>(level)];
    return static_cast<int>(std::min<std::int64_t>(value, 255));
  });
}

// The mean of a pixel and its eight neighbours, in which it counts five times.
// What has no eight neighbours stays.
Image smoothed(const Image& image) {
  Image smooth = image;
  const std::int64_t right = image.channels;
  for (std::int64_t y = 1; y + 1 < image.height; ++y) {
    const std::uint8_t* above = image.row(y - 1);
    const std::uint8_t* here = image.row(y);
    const std::uint8_t* below = image.row(y + 1);
    std::uint8_t* out = smooth.row(y);
    for (std::int64_t i = right; i + right < image.stride(); ++i) {
      const auto three = [&](const std::uint8_t* row) {
        return row[i - right] + row[i] + row[i + right];
      };
      const int sum = three(above) + three(here) + three(below) + 4 * here[i];
      out[i] = static_cast<std::uint8_t>((2 * sum + 13) / 26);
    }
  }
  return smooth;
}

struct Hsv {
  int hue, saturation, value;  // each from 0 to 255
};

Hsv to_hsv(const std::uint8_t* rgb) {
  const int value = std::max({rgb[0], rgb[1], rgb[2]});
  const int low = std::min({rgb[0], rgb[1], rgb[2]});
  if (low == value) return {0, 0, value};
  const auto range = static_cast<float>(value - low);
  const auto part = [&](int c) -> double {
    return static_cast<float>(value - rgb[c]) / range;
  };
  const auto sixths =
      static_cast<float>(rgb[0] == value   ? part(2) - part(1)
                         : rgb[1] == value ? 2 + part(0) - part(2)
                                           : 4 + part(1) - part(0));
  const auto hue = static_cast<float>(std::fmod(sixths / 6.0 + 1.0, 1.0));
  return {static_cast<int>(hue * 255.0),
          static_cast<int>(range / static_cast<float>(value) * 255.0), value};
}

void to_rgb(const Hsv& hsv, std::uint8_t* rgb) {
  if (hsv.saturation == 0) {
    std::fill_n(rgb, 3, static_cast<std::uint8_t>(hsv.value));
    return;
  }
  const double sixths = static_cast<float>(hsv.hue) * 6.0 / 255.0;
  const int sector = static_cast<int>(sixths);
  const double rest = static_cast<float>(sixths - sector);
  const double share = static_cast<float>(hsv.saturation / 255.0);
  const auto level = [&](double lost) {
    return static_cast<std::uint8_t>(
        std::clamp(std::round(hsv.value * (1.0 - lost)), 0.0, 255.0));
  };
  const auto v = static_cast<std::uint8_t>(hsv.value);
  const std::uint8_t p = level(share);
  const std::uint8_t q = level(share * rest);
  const std::uint8_t t = level(share * (1.0 - rest));
  const std::array<std::array<std::uint8_t, 3>, 6> colours = {
      {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}}};
  const auto& colour = colours[static_cast<std::size_t>(sector % 6)];
  std::copy(colour.begin(), colour.end(), rgb);
}

}  // namespace

void adjust_brightness(Image& image, double factor) {
  const auto share = static_cast<float>(factor);
  look_up(image, make_table([&](int level) { return blend(0, level, share); }));
}

void adjust_contrast(Image& image, double factor) {
  std::int64_t sum = 0;
  const std::int64_t count = image.width * image.height;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint8_t* pixel = image.pixels.data() + i * image.channels;
    sum += image.channels == 3 ? grey_of(pixel) : *pixel;
  }
  const auto mean = static_cast<int>((2 * sum + count) / (2 * count));
  const auto share = static_cast<float>(factor);
  look_up(image,
          make_table([&](int level) { return blend(mean, level, share); }));
}

void adjust_saturation(Image& image, double factor) {
  if (image.channels == 1) return;
  const auto share = static_cast<float>(factor);
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    std::uint8_t* pixel = &image.pixels[i];
    const int grey = grey_of(pixel);
    for (int c = 0; c < 3; ++c) pixel[c] = blend(grey, pixel[c], share);
  }
}

void adjust_sharpness(Image& image, double factor) {
  const Image smooth = smoothed(image);
  const auto share = static_cast<float>(factor);
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    image.pixels[i] = blend(smooth.pixels[i], image.pixels[i], share);
  }
}

void adjust_hue(Image& image, double turns) {
  if (image.channels == 1) return;
  const int shift = static_cast<int>(turns * 255);
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    Hsv hsv = to_hsv(&image.pixels[i]);
    hsv.hue = (hsv.hue + shift) & 255;
    to_rgb(hsv, &image.pixels[i]);
  }
}

void invert(Image& image) {
  look_up(image, make_table([](int level) { return 255 - level; }));
}

void posterize(Image& image, int bits) {
  const int mask = ~((1 << (8 - bits)) - 1);
  look_up(image, make_table([&](int level) { return level & mask; }));
}

void solarize(Image& image, double threshold) {
  look_up(image, make_table([&](int level) {
            return level < threshold ? level : 255 - level;
          }));
}

void solarize_add(Image& image, int amount) {
  look_up(image, make_table([&](int level) {
            return level < 128 ? level + amount : level;
          }));
}

void autocontrast(Image& image) { look_up_by_channel(image, stretching); }

void equalize(Image& image) { look_up_by_channel(image, equalizing); }

}  // namespace polyattn::augment
