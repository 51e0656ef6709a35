// Images of Pathfinder's scenes, and sets of them. As in pathfinder_scene.cc,
// no two operations are fused.
#include "data/pathfinder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "data/workers.h"

namespace polyattn::data {
namespace {

// A pixel is looked at in so many places a side.
constexpr int kSamples = 4;
// A paddle that covers half of a pixel gives it three quarters of white: the
// product of the two contrasts of the published set, 2 and 0.75.
constexpr double kPaddleContrast = 1.5;
constexpr double kWhite = 255;

struct Pixels {
  std::int64_t first_x, last_x, first_y, last_y;
};

// Those within `reach` of the points.
Pixels pixels_around(Point a, Point b, double reach) {
  const auto pixel = [](double place) {
    return std::clamp<std::int64_t>(
        static_cast<std::int64_t>(std::floor(place)), 0, kPathfinderSide - 1);
  };
  return {pixel(std::min(a.x, b.x) - reach), pixel(std::max(a.x, b.x) + reach),
          pixel(std::min(a.y, b.y) - reach), pixel(std::max(a.y, b.y) + reach)};
}

// Of a pixel, the share of places that the shape holds.
template <typename Shape>
double coverage(std::int64_t x, std::int64_t y, const Shape& shape) {
  int count = 0;
  for (int i = 0; i < kSamples; ++i) {
    for (int j = 0; j < kSamples; ++j) {
      const Point place{static_cast<double>(x) + (j + 0.5) / kSamples,
                        static_cast<double>(y) + (i + 0.5) / kSamples};
      if (shape(place)) ++count;
    }
  }
  return static_cast<double>(count) / (kSamples * kSamples);
}

// What is there already is not made darker.
template <typename Shape>
void draw(std::vector<std::uint8_t>& image, const Pixels& pixels,
          double contrast, const Shape& shape) {
  for (std::int64_t y = pixels.first_y; y <= pixels.last_y; ++y) {
    for (std::int64_t x = pixels.first_x; x <= pixels.last_x; ++x) {
      const double light = std::min(1.0, contrast * coverage(x, y, shape));
      auto& pixel = image[static_cast<std::size_t>(y * kPathfinderSide + x)];
      const auto level = std::lround(kWhite * light);
      pixel = std::max(pixel, static_cast<std::uint8_t>(level));
    }
  }
}

void draw_paddle(std::vector<std::uint8_t>& image, const Paddle& paddle) {
  constexpr double kHalf = kPaddleThickness / 2;
  const double dx = (paddle.end.x - paddle.begin.x) / kPaddleLength;
  const double dy = (paddle.end.y - paddle.begin.y) / kPaddleLength;
  draw(image, pixels_around(paddle.begin, paddle.end, kHalf), kPaddleContrast,
       [&](Point p) {
         const double x = p.x - paddle.begin.x, y = p.y - paddle.begin.y;
         const double along = x * dx + y * dy, across = x * dy - y * dx;
         return along >= 0 && along <= kPaddleLength &&
                std::abs(across) <= kHalf;
       });
}

void draw_marker(std::vector<std::uint8_t>& image, Point middle) {
  draw(image, pixels_around(middle, middle, kMarkerRadius), 1, [&](Point p) {
    const double x = p.x - middle.x, y = p.y - middle.y;
    return x * x + y * y <= kMarkerRadius * kMarkerRadius;
  });
}

enum class Part : std::uint64_t { kTest = 1, kTrain = 2 };

base::Random random_of(std::uint64_t seed, Part part, std::size_t i) {
  base::Random outer(seed);
  base::Random inner(outer.next() + static_cast<std::uint64_t>(part));
  return base::Random(inner.next() + i);
}

bool is_connected(std::size_t i) { return i % 2 == 1; }

SequenceSet generate(const PathfinderSource& source, Part part,
                     std::int64_t count) {
  constexpr std::size_t kBlock = 64;
  const auto images = static_cast<std::size_t>(count);
  std::vector<std::uint8_t> pixels(images * kPathfinderLength);
  run_parallel((images + kBlock - 1) / kBlock, [&](std::size_t block) {
    const std::size_t end = std::min(images, (block + 1) * kBlock);
    for (std::size_t i = block * kBlock; i < end; ++i) {
      base::Random random = random_of(source.seed, part, i);
      const auto image = pathfinder_image(draw_pathfinder_scene(
          source.contour_length, is_connected(i), random));
      std::copy(image.begin(), image.end(),
                &pixels[i * static_cast<std::size_t>(kPathfinderLength)]);
    }
  });
  return pathfinder_set(std::move(pixels));
}

void check_range(const char* key, std::int64_t value, std::int64_t least,
                 std::int64_t most) {
  if (value >= least && value <= most) return;
  throw DataError(fmt::format("[pathfinder] {} {} is not in [{}, {}]", key,
                              value, least, most));
}

}  // namespace

std::vector<std::uint8_t> pathfinder_image(const PathfinderScene& scene) {
  std::vector<std::uint8_t> image(static_cast<std::size_t>(kPathfinderLength));
  const auto draw_path = [&](const Path& path) {
    for (const Paddle& paddle : path) draw_paddle(image, paddle);
  };
  std::for_each(scene.paths.begin(), scene.paths.end(), draw_path);
  std::for_each(scene.distractors.begin(), scene.distractors.end(), draw_path);
  for (const Point& marker : scene.markers) draw_marker(image, marker);
  return image;
}

SequenceSplits empty_pathfinder() {
  SequenceSplits splits;
  splits.vocabulary = 256;
  splits.class_names = {"two paths", "one path"};
  return splits;
}

SequenceSet pathfinder_set(std::vector<std::uint8_t> pixels) {
  SequenceSet set;
  set.tokens = std::move(pixels);
  const std::size_t count = set.tokens.size() / kPathfinderLength;
  for (std::size_t i = 0; i < count; ++i) {
    set.labels.push_back(is_connected(i) ? 1 : 0);
    set.begin.push_back(static_cast<std::int64_t>(i + 1) * kPathfinderLength);
  }
  return set;
}

SequenceSplits generate_pathfinder(const PathfinderSource& source) {
  constexpr std::int64_t kMaxCount = 1'000'000;
  check_range("contour_length", source.contour_length, kMinContour,
              kMaxContour);
  check_range("train_count", source.train_count, 1, kMaxCount);
  check_range("test_count", source.test_count, 1, kMaxCount);
  SequenceSplits splits = empty_pathfinder();
  splits.train = generate(source, Part::kTrain, source.train_count);
  splits.test = generate(source, Part::kTest, source.test_count);
  return splits;
}

}  // namespace polyattn::data
