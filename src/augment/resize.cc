#include "augment/resize.h"

#include <algorithm>
#include <cmath>

namespace polyattn::augment {
namespace {

constexpr int kWeightBits = 22;
constexpr std::int32_t kHalf = 1 << (kWeightBits - 1);

double triangle(double x) { return std::max(0.0, 1 - std::abs(x)); }

double cubic(double x) {
  constexpr double kA = -0.5;
  x = std::abs(x);
  if (x < 1) return ((kA + 2) * x - (kA + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * kA;
  return 0;
}

// The pixels of a line that make up one pixel of the result: `count` of them
// from `begin` on. Their weights sum to 2^22, but for rounding.
struct Tap {
  std::int64_t begin = 0;
  std::int64_t count = 0;
  const std::int32_t* weights = nullptr;
};

// One axis of a Resize.
struct Axis {
  double begin, length;  // of the box
  std::int64_t pixels;   // that the image has
  std::int64_t scaled;
  std::int64_t first, wanted;  // of the window
  Interpolation interpolation;
};

class Taps {
 public:
  explicit Taps(const Axis& axis) {
    const bool linear = axis.interpolation == Interpolation::kBilinear;
    const double scale = axis.length / static_cast<double>(axis.scaled);
    const double spread = std::max(scale, 1.0);
    const double reach = spread * (linear ? 1 : 2);
    const double low = std::max(std::floor(axis.begin), 0.0);
    const double high = std::min(std::ceil(axis.begin + axis.length),
                                 static_cast<double>(axis.pixels));
    most_ = static_cast<std::size_t>(std::ceil(reach)) * 2 + 1;
    weights_.resize(most_ * static_cast<std::size_t>(axis.wanted));
    std::vector<double> exact(most_);
    for (std::int64_t i = 0; i < axis.wanted; ++i) {
      const double centre =
          axis.begin + (static_cast<double>(axis.first + i) + 0.5) * scale;
      const auto begin = static_cast<std::int64_t>(
          std::max(std::trunc(centre - reach + 0.5), low));
      const auto end = static_cast<std::int64_t>(
          std::min(std::trunc(centre + reach + 0.5), high));
      double sum = 0;
      for (std::int64_t j = begin; j < end; ++j) {
        const double x = (static_cast<double>(j) - centre + 0.5) / spread;
        const double weight = linear ? triangle(x) : cubic(x);
        exact[static_cast<std::size_t>(j - begin)] = weight;
        sum += weight;
      }
      std::int32_t* weights = &weights_[static_cast<std::size_t>(i) * most_];
      for (std::int64_t j = 0; j < end - begin; ++j) {
        weights[j] = static_cast<std::int32_t>(std::lround(
            exact[static_cast<std::size_t>(j)] / sum * (1 << kWeightBits)));
      }
      taps_.push_back({begin, end - begin, weights});
    }
  }

  const Tap& operator[](std::int64_t i) const {
    return taps_[static_cast<std::size_t>(i)];
  }
  std::int64_t begin() const { return taps_.front().begin; }
  std::int64_t end() const { return taps_.back().begin + taps_.back().count; }

 private:
  std::size_t most_;
  std::vector<std::int32_t> weights_;
  std::vector<Tap> taps_;
};

std::uint8_t to_level(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

template <std::int64_t kChannels>
void scale_line(const std::uint8_t* line, const Taps& taps, std::int64_t count,
                std::uint8_t* out) {
  for (std::int64_t x = 0; x < count; ++x) {
    const Tap& tap = taps[x];
    const std::uint8_t* pixel = line + tap.begin * kChannels;
    std::int32_t sums[kChannels];
    std::fill(sums, sums + kChannels, kHalf);
    for (std::int64_t j = 0; j < tap.count; ++j) {
      const std::int32_t weight = tap.weights[j];
      for (std::int64_t c = 0; c < kChannels; ++c) {
        sums[c] += weight * pixel[c];
      }
      pixel += kChannels;
    }
    for (const std::int32_t sum : sums) *out++ = to_level(sum);
  }
}

// Of the rows that the other pass needs.
Image scale_lines(const Image& image, const Taps& columns, const Taps& rows,
                  std::int64_t width) {
  Image scaled = blank_image(width, rows.end() - rows.begin(), image.channels);
  for (std::int64_t y = 0; y < scaled.height; ++y) {
    const std::uint8_t* line = image.row(rows.begin() + y);
    if (image.channels == 3) {
      scale_line<3>(line, columns, width, scaled.row(y));
    } else {
      scale_line<1>(line, columns, width, scaled.row(y));
    }
  }
  return scaled;
}

}  // namespace

Image resize(const Image& image, const Resize& how) {
  const Window& window = how.window;
  const Taps columns({how.from.left, how.from.width, image.width,
                      how.scaled_width, window.left, window.width,
                      how.interpolation});
  const Taps rows({how.from.top, how.from.height, image.height,
                   how.scaled_height, window.top, window.height,
                   how.interpolation});
  const Image lines = scale_lines(image, columns, rows, window.width);
  Image result = blank_image(window.width, window.height, image.channels);
  std::vector<std::int32_t> sums(static_cast<std::size_t>(result.stride()));
  for (std::int64_t y = 0; y < result.height; ++y) {
    std::fill(sums.begin(), sums.end(), kHalf);
    const Tap& tap = rows[y];
    for (std::int64_t j = 0; j < tap.count; ++j) {
      const std::int32_t weight = tap.weights[j];
      const std::uint8_t* line = lines.row(tap.begin - rows.begin() + j);
      std::int32_t* sum = sums.data();
      for (std::int64_t i = 0; i < result.stride(); ++i) {
        sum[i] += weight * line[i];
      }
    }
    std::transform(sums.begin(), sums.end(), result.row(y), to_level);
  }
  return result;
}

Resize resize_to(const Box& from, std::int64_t size,
                 Interpolation interpolation) {
  return {.from = from,
          .scaled_width = size,
          .scaled_height = size,
          .window = {0, 0, size, size},
          .interpolation = interpolation};
}

Resize centre_crop(std::int64_t width, std::int64_t height,
                   const CentreCrop& crop) {
  const std::int64_t short_side = std::min(width, height);
  const auto scaled = [&](std::int64_t side) {
    return side == short_side ? crop.shorter : crop.shorter * side / short_side;
  };
  // Halves are rounded to even numbers.
  const auto margin = [&](std::int64_t side) {
    return std::llrint(static_cast<double>(side - crop.size) / 2);
  };
  const std::int64_t w = scaled(width);
  const std::int64_t h = scaled(height);
  return {
      .from = {0, 0, static_cast<double>(width), static_cast<double>(height)},
      .scaled_width = w,
      .scaled_height = h,
      .window = {margin(w), margin(h), crop.size, crop.size},
      .interpolation = crop.interpolation};
}

}  // namespace polyattn::augment
