// Nothing but +, -, *, / and square roots, which are rounded alike everywhere:
// the same numbers give the same scenes on every machine. CMake forbids that
// two of them are fused in this file.
#include "data/pathfinder_scene.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace polyattn::data {
namespace {

// Between a paddle and the joint at which the path turns, and so half of the
// gap between two paddles.
constexpr double kMargin = 1;
// Of two paddles, and of a paddle to the edge, where a marker is whole.
constexpr double kLeastDistance = kMarkerRadius;
// Between the begins of the two paths, and from half of that to the edges.
constexpr double kBeginToBegin = 7;
constexpr double kMiddleToEdge = 14;
// Of the two ends' distances to the begin that is marked. Without a limit the
// end of the same path is often the farther one.
constexpr double kMostUnequal = 3;
// Turns that are tried for the next paddle.
constexpr int kTurnTries = 16;
// When none of them has room, both paths lose so many paddles; so often.
constexpr std::int64_t kPaddlesBack = 3;
constexpr int kTimesBack = 20;
// Places that are tried for the distractors together.
constexpr int kDistractorTries = 1000;

Point operator+(Point a, Point b) { return {a.x + b.x, a.y + b.y}; }
Point operator-(Point a, Point b) { return {a.x - b.x, a.y - b.y}; }
Point operator*(double s, Point a) { return {s * a.x, s * a.y}; }
double dot(Point a, Point b) { return a.x * b.x + a.y * b.y; }
double cross(Point a, Point b) { return a.x * b.y - a.y * b.x; }

double squared_distance(Point p, const Paddle& paddle) {
  const Point along = paddle.end - paddle.begin;
  const double place = dot(p - paddle.begin, along) / dot(along, along);
  const Point nearest = paddle.begin + std::clamp(place, 0.0, 1.0) * along;
  return dot(p - nearest, p - nearest);
}

bool on_both_sides(const Paddle& line, const Paddle& other) {
  const Point along = line.end - line.begin;
  return cross(along, other.begin - line.begin) *
             cross(along, other.end - line.begin) <
         0;
}

// Most pairs are so far from each other that no more need be computed.
bool are_apart(const Paddle& a, const Paddle& b) {
  constexpr double kFar = 2 * kPaddleLength + kLeastDistance;
  const Point between = a.begin - b.begin;
  return dot(between, between) > kFar * kFar ||
         distance_between(a, b) >= kLeastDistance;
}

Point draw_direction(base::Random& random) {
  for (;;) {
    const Point p{2 * random.uniform() - 1, 2 * random.uniform() - 1};
    const double square = dot(p, p);
    if (square > 1 || square < 1e-4) continue;
    return 1 / std::sqrt(square) * p;
  }
}

// The direction turned by an angle of density cos^2, below a right angle.
Point draw_turn(Point direction, base::Random& random) {
  for (;;) {
    const Point turn = draw_direction(random);
    if (turn.x <= 0 || random.uniform() >= turn.x * turn.x) continue;
    const Point turned{dot(direction, {turn.x, -turn.y}),
                       dot(direction, {turn.y, turn.x})};
    return 1 / std::sqrt(dot(turned, turned)) * turned;
  }
}

bool is_inside(Point p) {
  constexpr double kMost = kPathfinderSide - kLeastDistance;
  return p.x >= kLeastDistance && p.x <= kMost && p.y >= kLeastDistance &&
         p.y <= kMost;
}

// Draws into a scene.
class Drawing {
 public:
  Drawing(PathfinderScene& scene, base::Random& random)
      : scene_(scene), random_(random) {}

  // False, and half of a scene, if there is no room.
  bool fill(std::int64_t contour_length) {
    scene_.distractors.clear();
    for (Path& path : scene_.paths) path.clear();
    return draw_paths(contour_length) && choose_begin() &&
           draw_distractors(contour_length / 3);
  }

  // The path whose begin is marked.
  std::size_t from() const { return from_; }

 private:
  // They grow in turns, so that neither is the one with more room.
  bool draw_paths(std::int64_t length) {
    constexpr double kSpan = kPathfinderSide - 2 * kMiddleToEdge;
    auto& [one, other] = scene_.paths;
    const Point middle{kMiddleToEdge + kSpan * random_.uniform(),
                       kMiddleToEdge + kSpan * random_.uniform()};
    const Point half = kBeginToBegin / 2 * draw_direction(random_);
    if (!begin(middle - half, one) || !begin(middle + half, other)) {
      return false;
    }
    int times_back = 0;
    while (std::cmp_less(other.size(), length)) {
      if (extend(one) && extend(other)) continue;
      if (++times_back > kTimesBack) return false;
      const auto left = std::max<std::int64_t>(
          1, static_cast<std::int64_t>(other.size()) - kPaddlesBack);
      one.resize(static_cast<std::size_t>(left));
      other.resize(static_cast<std::size_t>(left));
    }
    return true;
  }

  // One from which both ends are about as far.
  bool choose_begin() {
    from_ = random_.below(2);
    if (is_fair()) return true;
    from_ = 1 - from_;
    return is_fair();
  }

  bool is_fair() const {
    const Point begin = scene_.paths[from_].front().begin;
    const Point own = scene_.paths[from_].back().end - begin;
    const Point other = scene_.paths[1 - from_].back().end - begin;
    return std::abs(std::sqrt(dot(own, own)) - std::sqrt(dot(other, other))) <
           kMostUnequal;
  }

  bool draw_distractors(std::int64_t length) {
    const auto count = static_cast<std::size_t>(kDistractingPaddles / length);
    std::vector<Path>& paths = scene_.distractors;
    for (int tries = kDistractorTries; tries > 0; --tries) {
      if (paths.size() == count) return true;
      if (!draw_distractor(length, paths.emplace_back())) paths.pop_back();
    }
    return false;
  }

  bool draw_distractor(std::int64_t length, Path& path) {
    const Point at{kPathfinderSide * random_.uniform(),
                   kPathfinderSide * random_.uniform()};
    bool fits = begin(at, path);
    for (std::int64_t i = 1; fits && i < length; ++i) fits = extend(path);
    return fits;
  }

  bool begin(Point at, Path& path) {
    const Point end = at + kPaddleLength * draw_direction(random_);
    return add({at, end}, path);
  }

  bool extend(Path& path) {
    const Paddle last = path.back();
    const Point direction = 1 / kPaddleLength * (last.end - last.begin);
    const Point joint = last.end + kMargin * direction;
    for (int tries = kTurnTries; tries > 0; --tries) {
      const Point turned = draw_turn(direction, random_);
      const Point begin = joint + kMargin * turned;
      if (add({begin, begin + kPaddleLength * turned}, path)) return true;
    }
    return false;
  }

  // If there is room.
  bool add(const Paddle& paddle, Path& path) {
    const bool fits =
        is_inside(paddle.begin) && is_inside(paddle.end) &&
        has_room(paddle, scene_.paths[0], path) &&
        has_room(paddle, scene_.paths[1], path) &&
        std::all_of(
            scene_.distractors.begin(), scene_.distractors.end(),
            [&](const Path& other) { return has_room(paddle, other, path); });
    if (fits) path.push_back(paddle);
    return fits;
  }

  // To its predecessor a paddle may be as near as it is.
  static bool has_room(const Paddle& paddle, const Path& other,
                       const Path& own) {
    const std::size_t count =
        other.size() - (&other == &own && !own.empty() ? 1 : 0);
    return std::all_of(
        other.begin(), other.begin() + static_cast<std::ptrdiff_t>(count),
        [&](const Paddle& there) { return are_apart(paddle, there); });
  }

  PathfinderScene& scene_;
  base::Random& random_;
  std::size_t from_ = 0;
};

}  // namespace

double distance_between(const Paddle& a, const Paddle& b) {
  if (on_both_sides(a, b) && on_both_sides(b, a)) return 0;
  return std::sqrt(
      std::min({squared_distance(a.begin, b), squared_distance(a.end, b),
                squared_distance(b.begin, a), squared_distance(b.end, a)}));
}

PathfinderScene draw_pathfinder_scene(std::int64_t contour_length,
                                      bool connected, base::Random& random) {
  PathfinderScene scene;
  Drawing drawing(scene, random);
  while (!drawing.fill(contour_length)) {
  }
  const std::size_t from = drawing.from();
  const std::size_t to = connected ? from : 1 - from;
  scene.markers = {scene.paths[from].front().begin, scene.paths[to].back().end};
  scene.connected = connected;
  return scene;
}

}  // namespace polyattn::data
