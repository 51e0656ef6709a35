// Features of a polynomial: the monomials by which a product of sums becomes a
// sum of products,
//
//   sum_p c_p (q . k)^p = sum_a w_a q^a k^a
//
// over the multi-indices a = (a_1 <= ... <= a_p) of every degree p whose
// coefficient is not zero, with w_a = c_p p! / prod(multiplicities!). They are
// ordered by degree, then as words. Neighbours share all factors but the last:
// a run is such a stretch, of which a kernel makes each feature with a single
// product.
#pragma once

#include <array>
#include <cstdint>

#include "polyattn/activation.h"

namespace polyattn {

// Number of monomials of this degree in `width` variables; -1 if it is beyond
// 2^53.
std::int64_t count_monomials(std::int64_t width, int degree);

// Number of features; -1 if it is beyond 2^53.
std::int64_t count_features(const Activation& polynomial, std::int64_t width);

// Features prefix * x_first, prefix * x_(first+1), ...; of degree 0 there is
// one, the number 1.
struct FeatureRun {
  int degree = 0;
  std::array<std::int32_t, kMaxDegree> prefix{};  // degree - 1 indices
  std::int64_t first = 0;                         // last index of the first
  std::int64_t count = 0;
  double first_weight = 1;  // w of the first
  double weight = 1;        // w of all others
};

// Walks over all features.
class FeatureCursor {
 public:
  FeatureCursor(const Activation& polynomial, std::int64_t width);

  // The next run, cut after `most` features; none are left if its count is 0.
  FeatureRun next(std::int64_t most);
  void skip(std::int64_t features);

 private:
  void begin_degree(int degree);
  void next_prefix();
  void weigh();

  std::array<double, kMaxDegree + 1> coefficient_;
  int top_;
  std::int64_t width_;
  FeatureRun run_;  // what is left of the present one
};

}  // namespace polyattn
