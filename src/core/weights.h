// The activation as the kernels want it: which loop to run, and with what
// constants. Shared by all targets.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "polyattn/activation.h"

namespace polyattn {

enum class WeightForm : std::uint8_t {
  kExp,
  kSigmoid,
  kRelu,
  kMonomial,  // degree 1 to 4
  kPolynomial,
};

template <typename T>
struct WeightParams {
  WeightForm form;
  bool sum;  // the divisor is the row sum of |w|
  int degree;
  T coefficient[kMaxDegree + 1];
  double gain;          // constant factor, left to the row scale
  double score_factor;  // what scores are multiplied by beside the scale
};

template <typename T>
WeightParams<T> make_weight_params(const Activation& a) {
  WeightParams<T> p{};
  p.sum = a.divisor == Divisor::kSum;
  p.degree = a.degree;
  p.gain = a.gain;
  p.score_factor = 1;
  switch (a.kind) {
    case ActivationKind::kSoftmax:
      p.form = WeightForm::kExp;
      p.score_factor = std::numbers::log2e;
      break;
    case ActivationKind::kSigmoid:
      p.form = WeightForm::kSigmoid;
      p.score_factor = std::numbers::log2e;
      break;
    case ActivationKind::kRelu:
      p.form = WeightForm::kRelu;
      break;
    case ActivationKind::kPolynomial: {
      bool monomial = a.degree >= 1 && a.degree <= 4;
      for (int i = 0; i <= a.degree; ++i) {
        p.coefficient[i] = static_cast<T>(a.coefficient[i]);
        if (i < a.degree && a.coefficient[i] != 0) monomial = false;
      }
      p.form = monomial ? WeightForm::kMonomial : WeightForm::kPolynomial;
      if (monomial) p.gain = a.coefficient[a.degree];
      break;
    }
  }
  return p;
}

// Widest strip of any target and type: two vectors of 64 bytes of f32.
inline constexpr int kMaxStrip = 32;

// Sums over the keys of a block, a lane for each query of a strip. Left as they
// are until clear(): most calls need none of them.
template <typename T>
struct LaneSums {
  alignas(64) T weight[kMaxStrip];
  alignas(64) T weight_sq[kMaxStrip];
  alignas(64) T derivative_sq[kMaxStrip];
  alignas(64) T derivative_sq_weight[kMaxStrip];
  alignas(64) T count[kMaxStrip];
  alignas(64) T top_score[kMaxStrip];

  void clear() { *this = LaneSums{}; }
};

}  // namespace polyattn
