#include "base/random.h"

#include <cmath>
#include <numbers>

namespace polyattn::base {
namespace {

// A point of the plane with normal coordinates.
struct Polar {
  double length, angle;
};

Polar random_point(Random& random) {
  const double length = std::sqrt(-2 * std::log(random.positive_uniform()));
  return {length, 2 * std::numbers::pi * random.positive_uniform()};
}

}  // namespace

double Random::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  const Polar point = random_point(*this);
  spare_ = point.length * std::sin(point.angle);
  has_spare_ = true;
  return point.length * std::cos(point.angle);
}

double Random::single_normal() {
  const Polar point = random_point(*this);
  return point.length * std::cos(point.angle);
}

// Z / sqrt(chi^2_3 / 3) has variance 3.
double Random::heavy_tailed() {
  const double z = normal();
  double chi_sq = 0;
  for (int i = 0; i < 3; ++i) {
    const double y = normal();
    chi_sq += y * y;
  }
  return z / std::sqrt(chi_sq);
}

// Johnk's rule in logarithms, which cannot underflow to 0/0 for small a.
double Random::symmetric_beta(double a) {
  for (;;) {
    const double x = std::log(1 - uniform()) / a;
    const double y = std::log(1 - uniform()) / a;
    const double top = std::fmax(x, y);
    const double sum = top + std::log(std::exp(x - top) + std::exp(y - top));
    if (sum <= 0) return std::exp(x - sum);
  }
}

}  // namespace polyattn::base
