// What an image of Pathfinder shows, as lines and circles: two long paths of
// dashes, shorter ones that distract, and two markers.
//
// A dash is called a paddle. Lengths are in pixels, and a point (x, y) is x to
// the right of the left edge and y below the upper one.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/random.h"

namespace polyattn::data {

// The numbers of Long Range Arena's Pathfinder32.
inline constexpr std::int64_t kPathfinderSide = 32;
inline constexpr double kPaddleLength = 2;
inline constexpr double kPaddleThickness = 0.5;
inline constexpr double kMarkerRadius = 1.5;
inline constexpr std::int64_t kDistractingPaddles = 20;

// Paddles of a long path. Longer ones find no room.
inline constexpr std::int64_t kMinContour = 3;
inline constexpr std::int64_t kMaxContour = 14;

struct Point {
  double x = 0;
  double y = 0;
};

struct Paddle {
  Point begin;
  Point end;
};

using Path = std::vector<Paddle>;

struct PathfinderScene {
  std::array<Path, 2> paths;
  std::vector<Path> distractors;
  // The begin of one path, and the end of that path or of the other.
  std::array<Point, 2> markers;
  bool connected = false;
};

// Paths of so many paddles; distractors of a third of that, and as
// many as make about 20 paddles. The paths begin near the middle, 7 pixels from
// each other. From a paddle to the next, a path turns by an angle whose density
// is its squared cosine. No two paddles are nearer than 1.5 pixels, but for
// neighbours in a path, and none is nearer to the edge. From the begin that is
// marked, the ends of both paths are equally far, within 3 pixels, or the
// distance of the markers would tell the answer. A scene that does not come out
// so is drawn again.
PathfinderScene draw_pathfinder_scene(std::int64_t contour_length,
                                      bool connected, base::Random& random);

// Of two line segments.
double distance_between(const Paddle& a, const Paddle& b);

}  // namespace polyattn::data
