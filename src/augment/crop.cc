#include "augment/crop.h"

#include <algorithm>
#include <cmath>

namespace polyattn::augment {
namespace {

constexpr int kTries = 10;

std::int64_t draw_below(std::int64_t count, base::Random& random) {
  return random.below(static_cast<std::uint32_t>(count));
}

double draw_between(double low, double high, base::Random& random) {
  return low + (high - low) * random.uniform();
}

// Sides of a part; their place is not drawn yet.
Window draw_sides(std::int64_t width, std::int64_t height,
                  const PartOptions& options, base::Random& random) {
  const double area = static_cast<double>(width * height) *
                      draw_between(options.least, options.most, random);
  const double ratio = std::exp(draw_between(
      std::log(options.lowest), std::log(options.highest), random));
  return {0, 0, std::llrint(std::sqrt(area * ratio)),
          std::llrint(std::sqrt(area / ratio))};
}

Window middle(std::int64_t width, std::int64_t height,
              const PartOptions& options) {
  Window window{0, 0, width, height};
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  if (ratio < options.lowest) {
    window.height = std::llrint(static_cast<double>(width) / options.lowest);
  } else if (ratio > options.highest) {
    window.width = std::llrint(static_cast<double>(height) * options.highest);
  }
  window.left = (width - window.width) / 2;
  window.top = (height - window.height) / 2;
  return window;
}

}  // namespace

Window draw_crop(std::int64_t width, std::int64_t height,
                 const PartOptions& options, base::Random& random) {
  for (int i = 0; i < kTries; ++i) {
    Window window = draw_sides(width, height, options, random);
    if (window.width < 1 || window.width > width || window.height < 1 ||
        window.height > height) {
      continue;
    }
    window.top = draw_below(height - window.height + 1, random);
    window.left = draw_below(width - window.width + 1, random);
    return window;
  }
  return middle(width, height, options);
}

std::optional<Window> draw_erased(std::int64_t width, std::int64_t height,
                                  base::Random& random) {
  constexpr PartOptions kErased{
      .least = 0.02, .most = 0.33, .lowest = 0.3, .highest = 3.3};
  for (int i = 0; i < kTries; ++i) {
    Window window = draw_sides(width, height, kErased, random);
    if (window.width >= width || window.height >= height) continue;
    window.top = draw_below(height - window.height + 1, random);
    window.left = draw_below(width - window.width + 1, random);
    return window;
  }
  return std::nullopt;
}

Window draw_cutmix(std::int64_t width, std::int64_t height, double share,
                   base::Random& random) {
  const std::int64_t x = draw_below(width, random);
  const std::int64_t y = draw_below(height, random);
  const double half = std::sqrt(1 - share) / 2;
  const auto span = [&](std::int64_t centre, std::int64_t length) {
    const auto reach =
        static_cast<std::int64_t>(half * static_cast<double>(length));
    const std::int64_t begin = std::max<std::int64_t>(centre - reach, 0);
    return std::pair{begin, std::min(centre + reach, length) - begin};
  };
  const auto [left, w] = span(x, width);
  const auto [top, h] = span(y, height);
  return {left, top, w, h};
}

}  // namespace polyattn::augment
