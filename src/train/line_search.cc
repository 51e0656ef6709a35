#include "train/line_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace polyattn::train {
namespace {

// Where the cubic through two points has its minimum; NaN if it has none.
double cubic_minimum(const LinePoint& a, const LinePoint& b) {
  const double d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.t - b.t);
  const double square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return std::numeric_limits<double>::quiet_NaN();
  const double d2 = std::copysign(std::sqrt(square), b.t - a.t);
  return b.t - (b.t - a.t) * (b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2);
}

class LineSearch {
 public:
  LineSearch(const std::function<LinePoint(double)>& at, const LinePoint& start,
             const LineSearchOptions& options)
      : at_(at), start_(start), options_(options) {
    result_.best = start;
    result_.shortest_tried = std::numeric_limits<double>::infinity();
  }

  LineSearchResult run(double first);

 private:
  bool may_go_on() const { return result_.evaluations < options_.evaluations; }
  LinePoint evaluate(double t);
  bool falls_enough(const LinePoint& p) const {
    return p.value <= start_.value + options_.c1 * p.t * start_.slope;
  }
  // Then it is the result.
  bool accept(const LinePoint& p);
  void zoom(LinePoint low, LinePoint high);
  double divide(const LinePoint& low, const LinePoint& high);

  const std::function<LinePoint(double)>& at_;
  const LinePoint& start_;
  LineSearchOptions options_;
  LineSearchResult result_;
  bool near_an_end_ = false;  // the last division was
};

LinePoint LineSearch::evaluate(double t) {
  ++result_.evaluations;
  result_.shortest_tried = std::min(result_.shortest_tried, t);
  LinePoint point = at_(t);
  if (std::isfinite(point.value) && std::isfinite(point.slope)) {
    result_.none_finite = false;
  } else {
    point.value = std::numeric_limits<double>::infinity();
  }
  return point;
}

bool LineSearch::accept(const LinePoint& p) {
  if (std::fabs(p.slope) > -options_.c2 * start_.slope) return false;
  result_.best = p;
  result_.fulfilled = true;
  return true;
}

// Longer and longer steps, until a stretch holds a point that fulfils both.
LineSearchResult LineSearch::run(double first) {
  double t = first;
  while (may_go_on()) {
    const LinePoint& last = result_.best;
    LinePoint p = evaluate(t);
    if (!falls_enough(p) || (last.t > 0 && p.value >= last.value)) {
      zoom(last, std::move(p));
      break;
    }
    if (accept(p)) break;
    if (p.slope >= 0) {
      zoom(p, last);
      break;
    }
    const double least = p.t + 0.01 * (p.t - last.t);
    const double most = 10 * p.t;
    const double cubic = cubic_minimum(last, p);
    t = std::isnan(cubic) ? (least + most) / 2 : std::clamp(cubic, least, most);
    result_.best = std::move(p);
  }
  return std::move(result_);
}

// A point between the two, at least a tenth of the stretch away from its ends
// if the last one was not.
double LineSearch::divide(const LinePoint& low, const LinePoint& high) {
  const double first = std::min(low.t, high.t);
  const double last = std::max(low.t, high.t);
  const double middle = (first + last) / 2;
  if (!std::isfinite(high.value)) return middle;
  const double cubic = cubic_minimum(low, high);
  if (std::isnan(cubic)) return middle;
  const double margin = 0.1 * (last - first);
  const double t = std::clamp(cubic, first, last);
  const bool near = t < first + margin || t > last - margin;
  if (near && (near_an_end_ || t == first || t == last)) {
    near_an_end_ = false;
    return t < middle ? first + margin : last - margin;
  }
  near_an_end_ = near;
  return t;
}

// `low` falls enough and is the lowest so far; it goes down towards `high`.
void LineSearch::zoom(LinePoint low, LinePoint high) {
  while (may_go_on() && std::fabs(high.t - low.t) > options_.shortest) {
    LinePoint p = evaluate(divide(low, high));
    if (!falls_enough(p) || p.value >= low.value) {
      high = std::move(p);
      continue;
    }
    if (accept(p)) return;
    if (p.slope * (high.t - low.t) >= 0) high = std::move(low);
    low = std::move(p);
  }
  result_.best = std::move(low);
}

}  // namespace

LineSearchResult search_line(const std::function<LinePoint(double)>& at,
                             const LinePoint& start, double first,
                             const LineSearchOptions& options) {
  return LineSearch(at, start, options).run(first);
}

}  // namespace polyattn::train
