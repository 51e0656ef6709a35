#include "theory/random.h"

#include <cmath>
#include <numbers>

namespace polyattn::theory {
namespace {

constexpr std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;

// Absorbs one part of a key after the other.
constexpr std::uint64_t absorbed(std::uint64_t state, std::uint64_t part) {
  return mixed(mixed(state + kGolden) + part);
}

std::uint64_t first_state(const RandomKey& key) {
  std::uint64_t state = absorbed(0, key.seed);
  state = absorbed(state, static_cast<std::uint64_t>(key.stream));
  state = absorbed(state, static_cast<std::uint64_t>(key.tokens));
  return absorbed(state, static_cast<std::uint64_t>(key.sample));
}

}  // namespace

Random::Random(const RandomKey& key) : state_(first_state(key)) {}

std::uint64_t Random::next() { return mixed(state_ += kGolden); }

double Random::uniform() {
  return static_cast<double>((next() >> 11) + 1) * 0x1p-53;
}

double Random::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  const double length = std::sqrt(-2 * std::log(uniform()));
  const double angle = 2 * std::numbers::pi * uniform();
  spare_ = length * std::sin(angle);
  has_spare_ = true;
  return length * std::cos(angle);
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

}  // namespace polyattn::theory
