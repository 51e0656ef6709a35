#include "core/features.h"

#include <algorithm>

namespace polyattn {
namespace {

constexpr double kExact = 9007199254740992.0;  // 2^53

}  // namespace

std::int64_t count_monomials(std::int64_t width, int degree) {
  if (degree == 0) return 1;
  // Products of a row of Pascal's triangle: each is a whole number.
  double count = 1;
  for (int i = 1; i <= degree; ++i) {
    count *= static_cast<double>(width - 1 + i);
    if (count > kExact) return -1;
    count /= i;
  }
  return static_cast<std::int64_t>(count);
}

std::int64_t count_features(const Activation& polynomial, std::int64_t width) {
  std::int64_t total = 0;
  for (int p = 0; p <= polynomial.degree; ++p) {
    if (polynomial.coefficient[p] == 0) continue;
    const std::int64_t count = count_monomials(width, p);
    if (count < 0) return -1;
    total += count;
  }
  return total;
}

FeatureCursor::FeatureCursor(const Activation& polynomial, std::int64_t width)
    : coefficient_(polynomial.coefficient),
      top_(polynomial.degree),
      width_(width) {
  begin_degree(0);
}

// The first run of the least degree from here on that has features.
void FeatureCursor::begin_degree(int degree) {
  while (degree <= top_ &&
         (coefficient_[degree] == 0 || (degree > 0 && width_ == 0)))
    ++degree;
  run_ = {};
  run_.degree = degree;
  if (degree > top_) return;
  run_.count = degree == 0 ? 1 : width_;
  weigh();
}

// c p! / prod(multiplicities!): the multiplicities of the prefix, where the
// last index of the first feature may be one more of its last.
void FeatureCursor::weigh() {
  const int length = std::max(run_.degree - 1, 0);
  double weight = coefficient_[run_.degree];
  for (int i = 2; i <= run_.degree; ++i) weight *= i;
  int same = 1;
  for (int i = 1; i < length; ++i) {
    same = run_.prefix[i] == run_.prefix[i - 1] ? same + 1 : 1;
    weight /= same;
  }
  run_.weight = weight;
  const bool repeats = length > 0 && run_.first == run_.prefix[length - 1];
  run_.first_weight = repeats ? weight / (same + 1) : weight;
}

void FeatureCursor::next_prefix() {
  const int length = run_.degree - 1;
  int i = length - 1;
  while (i >= 0 && run_.prefix[i] == width_ - 1) --i;
  if (i < 0) return begin_degree(run_.degree + 1);
  const std::int32_t index = run_.prefix[i] + 1;
  std::fill(run_.prefix.begin() + i, run_.prefix.begin() + length, index);
  run_.first = index;
  run_.count = width_ - index;
  weigh();
}

FeatureRun FeatureCursor::next(std::int64_t most) {
  FeatureRun result = run_;
  result.count = std::min(run_.count, most);
  if (result.count == 0) return result;
  run_.first += result.count;
  run_.count -= result.count;
  run_.first_weight = run_.weight;
  if (run_.count == 0) next_prefix();
  return result;
}

void FeatureCursor::skip(std::int64_t features) {
  while (features > 0) {
    const std::int64_t count = next(features).count;
    if (count == 0) return;
    features -= count;
  }
}

}  // namespace polyattn
