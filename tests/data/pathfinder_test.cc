// Pathfinder: what is drawn has the published numbers, and nothing but the
// paths tells the answer.
#include "data/pathfinder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <set>
#include <span>
#include <vector>

#include "base/random.h"
#include "data/sequence_support.h"

namespace polyattn::data {
namespace pathfinder_test {

using test::error_of;
using test::expect_equal;
using test::sequence;

constexpr double kRounding = 1e-9;

double distance(Point a, Point b) { return std::hypot(a.x - b.x, a.y - b.y); }

std::vector<PathfinderScene> scenes(std::int64_t contour_length, int count) {
  base::Random random(11);
  std::vector<PathfinderScene> all;
  for (int i = 0; i < count; ++i) {
    all.push_back(draw_pathfinder_scene(contour_length, i % 2 == 1, random));
  }
  return all;
}

std::vector<Path> all_paths(const PathfinderScene& scene) {
  std::vector<Path> paths = scene.distractors;
  paths.insert(paths.end(), scene.paths.begin(), scene.paths.end());
  return paths;
}

// The angle by which a path turns at a joint one pixel behind a paddle and one
// before the next; fails if there is no such joint.
double turn_between(const Paddle& a, const Paddle& b) {
  const Point joint{a.end.x + (a.end.x - a.begin.x) / 2,
                    a.end.y + (a.end.y - a.begin.y) / 2};
  EXPECT_NEAR(distance(joint, b.begin), 1, kRounding);
  EXPECT_NEAR(distance(joint, b.end), 3, kRounding);
  const double first = std::atan2(a.end.y - a.begin.y, a.end.x - a.begin.x);
  const double second = std::atan2(b.end.y - b.begin.y, b.end.x - b.begin.x);
  return std::remainder(second - first, 2 * std::numbers::pi);
}

TEST(Pathfinder, PathsHaveThePublishedLengths) {
  for (const auto& [contour, length, count] :
       {std::array<std::size_t, 3>{14, 4, 5}, {9, 3, 6}, {3, 1, 20}}) {
    for (const PathfinderScene& scene :
         scenes(static_cast<std::int64_t>(contour), 20)) {
      EXPECT_EQ(scene.paths[0].size(), contour);
      EXPECT_EQ(scene.paths[1].size(), contour);
      EXPECT_EQ(scene.distractors.size(), count);
      for (const Path& path : scene.distractors) {
        EXPECT_EQ(path.size(), length);
      }
    }
  }
}

TEST(Pathfinder, PaddlesKeepTheirDistance) {
  for (const PathfinderScene& scene : scenes(14, 40)) {
    std::vector<Paddle> before;
    for (const Path& path : all_paths(scene)) {
      for (std::size_t i = 0; i < path.size(); ++i) {
        EXPECT_NEAR(distance(path[i].begin, path[i].end), 2, kRounding);
        for (const Point p : {path[i].begin, path[i].end}) {
          EXPECT_GE(std::min({p.x, p.y, 32 - p.x, 32 - p.y}), 1.5);
        }
        // The last of them is the one before it in its path.
        const std::size_t others = before.size() - (i > 0 ? 1 : 0);
        for (std::size_t j = 0; j < others; ++j) {
          EXPECT_GE(distance_between(before[j], path[i]), 1.5);
        }
        before.push_back(path[i]);
      }
    }
  }
}

// The density of a turn is 2/pi cos^2: its deviation is 32.5 degrees. Paths
// that come to an edge or to another path have to turn away, which makes it
// larger, 38.9 degrees in 4000 images, but no turn is a right angle.
TEST(Pathfinder, TurnsAreThoseOfContinuityOne) {
  double squares = 0;
  int count = 0;
  for (const PathfinderScene& scene : scenes(14, 60)) {
    for (const Path& path : all_paths(scene)) {
      for (std::size_t i = 1; i < path.size(); ++i) {
        const double turn = turn_between(path[i - 1], path[i]);
        EXPECT_LT(std::abs(turn), std::numbers::pi / 2 + kRounding);
        squares += turn * turn;
        ++count;
      }
    }
  }
  const double free = std::sqrt(std::numbers::pi * std::numbers::pi / 12 - 0.5);
  EXPECT_NEAR(std::sqrt(squares / count), 1.2 * free, 0.05 * free);
}

TEST(Pathfinder, MarkersAreAtTheEndsOfTheRightPaths) {
  const auto is_at = [](Point a, Point b) { return a.x == b.x && a.y == b.y; };
  int from_second = 0;
  for (const PathfinderScene& scene : scenes(9, 100)) {
    const auto& paths = scene.paths;
    const std::size_t from =
        is_at(scene.markers[0], paths[0].front().begin) ? 0 : 1;
    from_second += static_cast<int>(from);
    EXPECT_TRUE(is_at(scene.markers[0], paths[from].front().begin));
    const std::size_t to = scene.connected ? from : 1 - from;
    EXPECT_TRUE(is_at(scene.markers[1], paths[to].back().end));
    // Where the other answer would have put the second one.
    EXPECT_LT(std::abs(distance(scene.markers[0], paths[0].back().end) -
                       distance(scene.markers[0], paths[1].back().end)),
              3);
    EXPECT_NEAR(distance(paths[0].front().begin, paths[1].front().begin), 7,
                kRounding);
  }
  // Of 100 fair draws, five deviations.
  EXPECT_NEAR(from_second, 50, 25);
}

TEST(Pathfinder, DistanceOfSegments) {
  const Paddle flat{{0, 0}, {2, 0}};
  EXPECT_EQ(distance_between(flat, {{1, -1}, {1, 1}}), 0);
  EXPECT_EQ(distance_between(flat, {{0, 3}, {2, 3}}), 3);
  EXPECT_EQ(distance_between(flat, {{5, 4}, {5, 6}}), 5);
  EXPECT_EQ(distance_between({{1, 1}, {1, 3}}, flat), 1);
  EXPECT_EQ(distance_between(flat, {{3, -1}, {3, 1}}), 1);
}

TEST(Pathfinder, DrawsWhatTheSceneSays) {
  PathfinderScene scene;
  scene.paths[0] = {{{4, 10}, {6, 10}}};  // between two rows of pixels
  scene.paths[1] = {{{20.5, 4}, {20.5, 6}}};
  scene.markers = {Point{10, 20}, Point{25, 25}};
  const std::vector<std::uint8_t> image = pathfinder_image(scene);
  const auto at = [&](std::size_t x, std::size_t y) {
    return static_cast<int>(image[32 * y + x]);
  };
  // A quarter of each pixel beside it, and 1.5 times that of white.
  for (const std::size_t y : {9U, 10U}) {
    EXPECT_EQ(at(4, y), 96);
    EXPECT_EQ(at(5, y), 96);
    EXPECT_EQ(at(3, y), 0);
    EXPECT_EQ(at(6, y), 0);
  }
  // Half of a pixel.
  EXPECT_EQ(at(20, 4), 191);
  EXPECT_EQ(at(20, 5), 191);
  EXPECT_EQ(at(19, 4), 0);
  EXPECT_EQ(at(20, 6), 0);
  // A marker: four white pixels, and what of a circle is in those around them.
  for (const std::size_t y : {19U, 20U}) {
    EXPECT_EQ(at(9, y), 255);
    EXPECT_EQ(at(10, y), 255);
    EXPECT_GT(at(8, y), 90);
    EXPECT_LT(at(8, y), 255);
    EXPECT_EQ(at(7, y), 0);
  }
  EXPECT_EQ(at(24, 24), 255);
  EXPECT_EQ(at(8, 18), at(11, 21));
}

PathfinderSource small() {
  return {.contour_length = 9, .train_count = 150, .test_count = 70, .seed = 7};
}

TEST(Pathfinder, SetsAreBalancedAndDisjoint) {
  PathfinderSource source = small();
  source.contour_length = 14;
  const SequenceSplits splits = generate_pathfinder(source);
  EXPECT_EQ(splits.vocabulary, 256);
  EXPECT_EQ(splits.class_names.size(), 2U);
  ASSERT_EQ(splits.train.count(), 150U);
  ASSERT_EQ(splits.test.count(), 70U);
  std::set<std::vector<std::uint8_t>> all;
  double lit = 0;
  for (const SequenceSet* set : {&splits.train, &splits.test}) {
    EXPECT_EQ(std::count(set->labels.begin(), set->labels.end(), 1),
              static_cast<std::ptrdiff_t>(set->count() / 2));
    for (std::size_t i = 0; i < set->count(); ++i) {
      const auto image = sequence(*set, i);
      ASSERT_EQ(image.size(), 1024U);
      EXPECT_GE(std::count(image.begin(), image.end(), 255), 4);
      lit +=
          static_cast<double>(1024 - std::count(image.begin(), image.end(), 0));
      all.insert(image);
    }
  }
  EXPECT_EQ(all.size(), 220U) << "an image is there twice";
  // Of 4000 images 19.6 % of the pixels were not black.
  EXPECT_NEAR(lit / (1024 * 220), 0.196, 0.01);
}

// How well a number tells one class from the other: the share of pairs in which
// it is larger for the connected image, and half of the draws. 0.5: not at all.
double separation(const std::vector<double>& values) {
  double wins = 0;
  for (std::size_t i = 0; i < values.size(); i += 2) {
    for (std::size_t j = 1; j < values.size(); j += 2) {
      wins += values[j] > values[i] ? 1 : values[j] == values[i] ? 0.5 : 0;
    }
  }
  const auto half = static_cast<double>(values.size()) / 2;
  return wins / (half * half);
}

// Four deviations of what chance gives with so many images. Drawn without a
// limit on the distances of the ends, these would separate by 0.538.
TEST(Pathfinder, NothingSimpleTellsTheAnswer) {
  constexpr int kCount = 3000;
  std::vector<double> brightness, lit, distances, edge;
  for (const PathfinderScene& scene : scenes(9, kCount)) {
    const auto image = pathfinder_image(scene);
    double sum = 0;
    for (const std::uint8_t pixel : image) sum += pixel;
    brightness.push_back(sum);
    lit.push_back(
        static_cast<double>(std::count(image.begin(), image.end(), 0)));
    const auto [a, b] = scene.markers;
    distances.push_back(distance(a, b));
    edge.push_back(std::min({b.x, b.y, 32 - b.x, 32 - b.y}));
  }
  const double chance = 4 / std::sqrt(3.0 * kCount);
  EXPECT_NEAR(separation(brightness), 0.5, chance);
  EXPECT_NEAR(separation(lit), 0.5, chance);
  EXPECT_NEAR(separation(distances), 0.5, chance);
  EXPECT_NEAR(separation(edge), 0.5, chance);
}

TEST(Pathfinder, FollowsFromTheSeed) {
  const SequenceSplits first = generate_pathfinder(small());
  expect_equal(generate_pathfinder(small()).train, first.train);
  auto source = small();
  source.train_count = 9;
  const SequenceSplits fewer = generate_pathfinder(source);
  expect_equal(fewer.test, first.test);
  EXPECT_EQ(sequence(fewer.train, 8), sequence(first.train, 8));
  source.seed = 8;
  EXPECT_NE(generate_pathfinder(source).test.tokens, first.test.tokens);
  // On every platform and for ever. If this changes then kPathfinderVersion
  // must.
  EXPECT_EQ(base::hash_bytes(first.train.tokens), 1959620724827204507U);
}

TEST(Pathfinder, RefusesNumbersOutOfRange) {
  const auto message = [](auto change) {
    PathfinderSource source = small();
    change(source);
    return error_of([&] { generate_pathfinder(source); });
  };
  EXPECT_EQ(message([](auto& s) { s.contour_length = 2; }),
            "[pathfinder] contour_length 2 is not in [3, 14]");
  EXPECT_EQ(message([](auto& s) { s.contour_length = 15; }),
            "[pathfinder] contour_length 15 is not in [3, 14]");
  EXPECT_EQ(message([](auto& s) { s.train_count = 0; }),
            "[pathfinder] train_count 0 is not in [1, 1000000]");
  EXPECT_EQ(message([](auto& s) { s.test_count = 1000001; }),
            "[pathfinder] test_count 1000001 is not in [1, 1000000]");
}

}  // namespace pathfinder_test
}  // namespace polyattn::data
